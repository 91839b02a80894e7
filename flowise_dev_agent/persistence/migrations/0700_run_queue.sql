-- The queue of runs and its task were called "legs" and "leg".
UPDATE procrastinate_jobs SET queue_name = 'runs', task_name = 'run' WHERE queue_name = 'legs';
