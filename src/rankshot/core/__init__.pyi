from .errors import RankshotError as RankshotError
