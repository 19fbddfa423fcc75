from .embedded import (
    CIFAR_SENSES as CIFAR_SENSES,
    ClassNames as ClassNames,
    Sentences as Sentences,
    SoundScores as SoundScores,
    TextData as TextData,
    class_names as class_names,
    load_class_vectors as load_class_vectors,
    load_election as load_election,
    load_held_out_panel as load_held_out_panel,
    load_intents as load_intents,
    load_panel as load_panel,
    load_sentences as load_sentences,
    load_similarities as load_similarities,
    load_sounds as load_sounds,
)
from .example_files import write_example_files as write_example_files
from .images import (
    ImageData as ImageData,
    ImageNetScores as ImageNetScores,
    Photographs as Photographs,
    Thumbnails as Thumbnails,
    load_cifar as load_cifar,
    load_imagenet as load_imagenet,
    load_photographs as load_photographs,
    load_thumbnails as load_thumbnails,
    write_photographs as write_photographs,
)
