import { expect, it } from 'vitest'
import { readWithExcerpt } from '../testing/excerpt-of-verl.ts'
import { clusterAddress, withoutOwnRay } from './own-ray.ts'
import { planVerl } from './plan-verl.ts'
import { readVerlConfig } from './read-verl-config.ts'
import { verlRun } from './verl-run.test-support.ts'

it('keeps of the keys of Ray those that a cluster takes', () => {
  const kept = ['++ray_kwargs.ray_init.include_dashboard=false', 'ray_kwargs.timeline_json_file=a=b', '++ray_kwargs.ray_init.num_cpus_x=1']
  const rayKeys = ['ray_kwargs.ray_init.num_cpus=4', '++ray_kwargs.ray_init.num_gpus=1', '+ray_kwargs.ray_init.resources.node=1']
  expect(withoutOwnRay([...rayKeys, ...kept])).toEqual(kept)
})

it.each([
  [undefined, null],
  [null, null],
  ['', null],
  ['local', null],
  ['auto', 'auto'],
  ['10.0.0.1:6379', '10.0.0.1:6379'],
])('reads %j as the cluster %j', (address, cluster) => expect(clusterAddress(address)).toBe(cluster))

it('leaves out what describes a Ray of its own where the configuration names a cluster, and says so of what the user wrote', async () => {
  const source = {
    'actor_rollout_ref.model.path': '/m',
    '+ray_kwargs.ray_init.address': '10.0.0.1:6379',
    'ray_kwargs.ray_init.num_cpus': 8,
    smoke: true,
  }
  const plan = await planVerl(await readVerlConfig(source, { verl: readWithExcerpt }), verlRun())
  expect(plan.problems).toEqual([])
  expect(plan.overrides.filter((each) => /num_[cg]pus/.test(each))).toEqual([])
  expect(plan.notes).toContain(
    "ray_kwargs.ray_init.num_cpus is left out: 8 (the configuration) is of a Ray of one's own, and verl joins the cluster at 10.0.0.1:6379.",
  )
})
