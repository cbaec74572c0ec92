"""AuTraScale, one idea per module: `policy.py` puts them together, `models.py` has the values that outlive a run.

Only `models` is imported here: reading models needs none of the packages that learning does.
"""

from elastream.policies.autrascale.models import BenefitModel, Sample

__all__ = ["BenefitModel", "Sample"]
