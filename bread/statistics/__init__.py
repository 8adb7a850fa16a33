"""Pure statistics: functions of arrays that know NumPy and SciPy alone."""
