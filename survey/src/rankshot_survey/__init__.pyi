from .answers import Answer as Answer
from .design import new_study as new_study
from .export import ranking_records as ranking_records, write_records as write_records
from .overview import Overview as Overview, read_overview as read_overview
from .store.database import Database as Database, backup_database as backup_database
from .study import (
    ItemImage as ItemImage,
    QualityRules as QualityRules,
    Question as Question,
    Study as Study,
    Translation as Translation,
)
from .study_files import format_study as format_study, read_study as read_study
from .web.app import create_app as create_app
