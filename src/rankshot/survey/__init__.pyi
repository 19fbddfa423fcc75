from .answers import Answer as Answer
from .design import format_study as format_study, new_study as new_study
from .export import Export as Export, export_lines as export_lines, write_export as write_export
from .progress import Overview as Overview, read_overview as read_overview
from .quality import Flag as Flag, find_flags as find_flags
from .store.database import Database as Database
from .study import (
    QualityRules as QualityRules,
    Question as Question,
    Study as Study,
    read_study as read_study,
)
from .web.app import create_app as create_app
