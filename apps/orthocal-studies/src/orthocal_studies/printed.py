"""What the paper (Chakraborty, Walsh, Strigari, Mallick, Bhattacharya) prints about each method."""

from __future__ import annotations

from typing import NamedTuple


class Printed(NamedTuple):
    """What the paper prints about one method, digit by digit; mean, sd and coverage have one text a parameter.

    A range over the replications is written "low–high". None is what the paper does not print.
    """

    mean: tuple[str, ...]
    sd: tuple[str, ...]
    coverage: tuple[str, ...] | None
    runtime: str | None = None


def printed_numbers(text: str) -> tuple[float, ...]:
    """The ends of a printed range, or the one printed number."""
    return tuple(float(part) for part in text.split("–"))


#: Table 1 of the paper (label tab:case1); runtimes are of a 3.8 GHz 8-core Intel Core i7
TABLE1 = {
    "pgp12": Printed(("3.47–3.66",), ("0.09–0.11",), ("0.97",), "3.78 s"),
    "pgp32": Printed(("3.48–3.65",), ("0.07–0.09",), ("0.97",)),
    "pgp52": Printed(("3.49–3.65",), ("0.06–0.08",), ("0.97",)),
    "pbart": Printed(("3.48–3.62",), ("0.04–0.05",), ("0.97",), "1.88 s"),
    "ogp12": Printed(("3.49–3.62",), ("0.14–0.18",), ("0.99",), "9.82 s"),
    "ogp32": Printed(("3.49–3.62",), ("0.14–0.18",), ("0.99",)),
    "ogp52": Printed(("3.41–3.68",), ("0.14–0.18",), ("0.99",)),
    "sgasp": Printed(("3.46–3.68",), ("0.30–0.45",), ("1",), "3.23 s"),
    "pcal": Printed(("3.48–3.67",), ("0.03–0.04",), ("0.95",), "16.40 min"),
}
_MEANS2 = ("0.19–0.20", "0.29–0.30")
#: Table 2 (tab:case2)
TABLE2 = {
    "pgp12": Printed(_MEANS2, ("0.001–0.001", "0.001–0.002"), ("0.93", "0.93"), "18.18 s"),
    "pgp32": Printed(_MEANS2, ("0.001–0.001", "0.001–0.002"), ("0.93", "0.93")),
    "pgp52": Printed(_MEANS2, ("0.001–0.001", "0.001–0.002"), ("0.93", "0.93")),
    "pbart": Printed(_MEANS2, ("0.0008–0.0009", "0.0009–0.001"), ("0.93", "0.91"), "9.04 s"),
    "ogp12": Printed(_MEANS2, ("0.003–0.004", "0.004–0.004"), ("0.97", "0.98"), "15.87 s"),
    "ogp32": Printed(_MEANS2, ("0.003–0.004", "0.004–0.005"), ("0.97", "0.98")),
    "ogp52": Printed(_MEANS2, ("0.003–0.004", "0.004–0.005"), ("0.97", "0.98")),
    "pcal": Printed(_MEANS2, ("0.0007–0.0007", "0.0007–0.0009"), ("0.96", "0.92"), "16.58 min"),
}
#: Table 3 (tab:case3); its second block is headed theta_1 again and is that of theta_2
TABLE3 = {
    "pgp12": Printed(("9.96–10.03", "19.77–20.51"), ("0.04–0.05", "0.29–0.37"), ("0.94", "0.94"), "1.72 min"),
    "pgp32": Printed(("9.95–10.05", "19.43–20.42"), ("0.04–0.05", "0.26–0.34"), ("0.94", "0.93")),
    "pgp52": Printed(("9.95–10.05", "19.57–20.28"), ("0.04–0.05", "0.24–0.35"), ("0.94", "0.93")),
    "pbart": Printed(("9.95–10.05", "19.48–20.38"), ("0.02–0.03", "0.20–0.26"), ("0.91", "0.91"), "13.16 s"),
    "pbmars": Printed(("9.95–10.04", "19.50–20.38"), ("0.02–0.03", "0.18–0.25"), ("0.91", "0.91"), "10.01 s"),
    "ogp52": Printed(("9.95–10.04", "19.31–20.84"), ("0.05–0.13", "0.51–0.88"), ("0.99", "1"), "59.13 s"),
}
#: the supplement's finite projection, Model 1 (tab:case1_finite); the smoothness of its PGP is not said
FINITE1 = {
    "pgp": Printed(("3.59",), ("0.07",), ("0.91",), "30.72 s"),
    "pbart": Printed(("3.58",), ("0.06",), ("0.90",), "17 min"),
}
#: the same for Model 2 (tab:case2_finite), with one coverage for both parameters
FINITE2 = {
    "pgp": Printed(("0.2", "0.31"), ("0.0003", "0.0004"), ("0.91", "0.91"), "2.65 min"),
    "pbart": Printed(("0.2", "0.31"), ("0.0008", "0.0008"), ("0.92", "0.92"), "1.35 h"),
}
#: Model 2 where the simulator is known from 7 x 7 runs only (tab:case4)
UNAVAILABLE = {
    "pgp": Printed(("0.21", "0.33"), ("0.03", "0.03"), None, "24 min"),
    "pbart": Printed(("0.22", "0.34"), ("0.04", "0.03"), None, "20 min"),
}
