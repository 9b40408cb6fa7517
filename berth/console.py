"""What programs print: lines, tables, on a terminal or into a file."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from berth.commandline import printable


def console() -> Console:
    """A console that does not squeeze tables when its output goes to a file."""
    wide = Console()
    return wide if wide.is_terminal else Console(width=180)


def tell(text: str) -> None:
    """Print a line as it is: names in a trace may look like markup, or hold control characters."""
    console().print(printable(text), markup=False, highlight=False, soft_wrap=True)


def show_rows(title: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print a table of words; columns of numbers stand to the right."""
    table = Table(title=escape(title), title_justify="left", header_style="")
    for i, name in enumerate(header):
        numbers = i > 0 and all(row[i][:1].isdigit() or row[i][:1] in "-+" for row in rows)
        table.add_column(escape(name), justify="right" if numbers else "left")
    for row in rows:
        table.add_row(*(escape(printable(word)) for word in row))
    console().print(table)
