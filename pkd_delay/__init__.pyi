"""The names of `pkd_delay`, one line each; type checkers and the package itself read them here."""

import pkd_delay.envs.drive
import pkd_delay.envs.problem_env
import pkd_delay.episodes
import pkd_delay.hindsight
import pkd_delay.latency
import pkd_delay.latency.curve
import pkd_delay.latency.difference
import pkd_delay.laws.files
import pkd_delay.laws.fitting
import pkd_delay.laws.kernel
import pkd_delay.long.learning
import pkd_delay.long.plan
import pkd_delay.models.autoscaler
import pkd_delay.models.tables
import pkd_delay.planning
import pkd_delay.production
import pkd_delay.theory
import pkd_delay.theory.bounds
import pkd_delay.transforms.blind
import pkd_delay.transforms.late_actions
from pkd_delay import rivals as rivals
from pkd_delay import theory as theory
from pkd_delay.delayed import Delayed as Delayed
from pkd_delay.delayed import DelayedMDP as DelayedMDP
from pkd_delay.envs.late_env import LateEnv as LateEnv
from pkd_delay.envs.late_vector import LateVectorEnv as LateVectorEnv
from pkd_delay.envs.late_vector import late_vector as late_vector
from pkd_delay.envs.late_view import FlatLateEnv as FlatLateEnv
from pkd_delay.known import KnownDelay as KnownDelay
from pkd_delay.laws.kernel import DelayChain as DelayChain
from pkd_delay.laws.kernel import InterArrival as InterArrival
from pkd_delay.laws.kernel import Lags as Lags
from pkd_delay.long.plan import BoundedPlan as BoundedPlan
from pkd_delay.planning import learn as learn
from pkd_delay.planning import optimistic_plan as optimistic_plan
from pkd_delay.planning import plan as plan
from pkd_delay.theory import hard as hard
from pkd_delay.theory import l1 as l1
from pkd_delay.theory import pomdp as pomdp
from pkd_delay.theory import sat as sat
from pkd_delay.unknown import UnknownDelay as UnknownDelay
