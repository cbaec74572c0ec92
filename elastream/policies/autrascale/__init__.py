"""AuTraScale, one idea per module: `policy.py` puts them together, `models.py` has the values that outlive a run."""

from elastream.policies.autrascale.models import BenefitModel, Sample
from elastream.policies.autrascale.policy import AuTraScale

__all__ = ["AuTraScale", "BenefitModel", "Sample"]
