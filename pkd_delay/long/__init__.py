"""Planning under long delays: bounds on the optimum, and a policy that earns the lower one."""
