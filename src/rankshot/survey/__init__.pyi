from .answers import Answer as Answer
from .design import new_study as new_study
from .export import Export as Export, export_lines as export_lines, write_export as write_export
from .overview import (
    Overview as Overview,
    Participant as Participant,
    read_overview as read_overview,
)
from .presentation import (
    Example as Example,
    ExtraQuestion as ExtraQuestion,
    ExtraTranslation as ExtraTranslation,
    Picture as Picture,
    Translation as Translation,
)
from .quality import Flag as Flag, find_flags as find_flags
from .raw_data import (
    answer_records as answer_records,
    participant_records as participant_records,
    write_records as write_records,
)
from .store.backup import backup_database as backup_database
from .store.database import Database as Database
from .study import (
    QualityRules as QualityRules,
    Question as Question,
    Study as Study,
)
from .study_files import read_study as read_study
from .study_text import format_study as format_study
from .web.app import create_app as create_app
