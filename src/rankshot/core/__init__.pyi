from .columns import open_table as open_table
from .errors import InputError as InputError, RankshotError as RankshotError
from .tables import (
    ID as ID,
    LABEL as LABEL,
    TABLE_ENDINGS as TABLE_ENDINGS,
    as_text_array as as_text_array,
    find_column as find_column,
    open_csv_writer as open_csv_writer,
)
from .validation import (
    require_choice as require_choice,
    require_module as require_module,
    require_number as require_number,
    require_whole_number as require_whole_number,
)
