import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AdvantageKind, groupAdvantages } from './advantages.ts'
import { type RoleRow, roleAdvantages } from './role-advantages.ts'
import { roleReward } from './role-reward.ts'

const kinds: AdvantageKind[] = ['group-relative', 'group-relative-unscaled', 'leave-one-out']
const lead = (reward: number): RoleRow => ({ agent: 'lead', reward })
const reader = (reward: number): RoleRow => ({ agent: 'reader', reward })

/** Rollouts of a group: the value of each role in each of them, `null` where it takes no part. */
const rollouts = fc.array(
  fc.record({
    lead: fc.option(fc.double({ min: -10, max: 10, noNaN: true })),
    reader: fc.option(fc.double({ min: -10, max: 10, noNaN: true })),
  }),
  { minLength: 1, maxLength: 8 },
)
const rowsOf = (values: { readonly lead: number | null; readonly reader: number | null }, calls = 1): RoleRow[] => [
  ...(values.lead === null ? [] : [lead(values.lead)]),
  ...(values.reader === null ? [] : Array.from({ length: calls }, () => reader(values.reader!))),
]

describe('roleAdvantages', () => {
  it.each([
    [
      'roles with one value each',
      [
        [lead(1), reader(1)],
        [lead(0), reader(0)],
      ],
      { lead: [0.5, -0.5], reader: [0.5, -0.5] },
    ],
    [
      'a mean of the role alone',
      [
        [lead(1), reader(3)],
        [lead(0), reader(1)],
      ],
      { lead: [0.5, -0.5], reader: [1, -1] },
    ],
    ['a role in some rollouts', [[lead(1), reader(2)], [lead(0)], [lead(2), reader(0)]], { lead: [0, -1, 1], reader: [1, null, -1] }],
    [
      'a role without variance',
      [
        [lead(1), reader(1)],
        [lead(0), reader(1)],
      ],
      { lead: [0.5, -0.5], reader: ['zero-variance-group', 0, 0] },
    ],
    ['a role in one rollout', [[lead(1), reader(1)], [lead(0)]], { lead: [0.5, -0.5], reader: ['group-of-one', 0, null] }],
    ['a role called more often in one', [[reader(1), reader(1), reader(1)], [reader(0)]], { reader: [0.5, -0.5] }],
    ['a rollout without rows', [[lead(1)], [], [lead(0)]], { lead: [0.5, null, -0.5] }],
    ['no rows', [[], []], {}],
  ] as const)('%s', (_, group, expected) => {
    const roles = Array.from(roleAdvantages(group, 'group-relative-unscaled'), ([role, { advantages, noGradient }]) => [
      role,
      noGradient === null ? advantages : [noGradient, ...advantages],
    ])
    expect(Object.fromEntries(roles)).toEqual(expected)
  })

  it.each(kinds)('%s: the advantages of a role sum to 0 over its rollouts', (kind) => {
    fc.assert(
      fc.property(rollouts, (group) => {
        for (const { advantages } of roleAdvantages(
          group.map((values) => rowsOf(values)),
          kind,
        ).values())
          expect(advantages.reduce<number>((sum, advantage) => sum + (advantage ?? 0), 0)).toBeCloseTo(0, 6)
      }),
    )
  })

  it.each(kinds)('%s: how often a role is called changes no advantage', (kind) => {
    fc.assert(
      fc.property(rollouts, fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 8, maxLength: 8 }), (group, calls) => {
        const once = roleAdvantages(
          group.map((values) => rowsOf(values)),
          kind,
        )
        expect(
          roleAdvantages(
            group.map((values, i) => rowsOf(values, calls[i])),
            kind,
          ),
        ).toEqual(once)
      }),
    )
  })

  it.each([...kinds, 'none'] as const)(
    '%s: with one reward and every role in every rollout they are those of the group, to the bit',
    (kind) => {
      const episodes = fc.array(
        fc.record({ reward: fc.double({ min: -10, max: 10, noNaN: true }), reader: fc.double({ min: -10, max: 10, noNaN: true }) }),
        { minLength: 1, maxLength: 8 },
      )
      fc.assert(
        fc.property(episodes, (group) => {
          const { advantages, noGradient } = groupAdvantages(
            group.map(({ reward }) => reward),
            kind,
          )
          const rows = group.map(({ reward, reader: own }) =>
            ['lead', 'reader'].map((agent) => ({ agent, reward: roleReward({ reward, agentRewards: { reader: own } }, agent, 0)! })),
          )
          expect([...roleAdvantages(rows, kind)]).toEqual(['lead', 'reader'].map((role) => [role, { advantages, noGradient }]))
        }),
      )
    },
  )
})

describe('roleReward', () => {
  it.each([
    [{ reward: 1, agentRewards: { reader: 0 } }, 0, 1],
    [{ reward: 1, agentRewards: { reader: 0 } }, 0.25, 0.75],
    [{ reward: 1, agentRewards: { reader: 0.5 } }, 1, 0.5],
    [{ reward: 0.1, agentRewards: { lead: 0 } }, 0.3, 0.1],
    [{ reward: 1 }, 1, 1],
    [{ reward: null, agentRewards: { reader: 1 } }, 1, null],
  ])('of %j with a share of %d is %s', (episode, ownReward, expected) => {
    expect(roleReward(episode, 'reader', ownReward)).toBe(expected)
  })

  it('takes no value for an agent that is named as a method of objects', () => {
    expect(roleReward({ reward: 1, agentRewards: {} }, 'toString', 1)).toBe(1)
  })
})
