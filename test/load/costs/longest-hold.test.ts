/**
 * That no policy that reads text keeps the thread for long, by what it does between two looks at the clock: how many
 * units of text it reads, and how many steps its patterns make. `longest-hold.ts` measures the time.
 */
import { expect, test } from 'bun:test'
import { WorkBudget, WorkBudgetExceeded } from '../../../src/inspection/work-budget.ts'
import { chat } from '../../../src/languages/chat/dialect.ts'
import { policyKinds } from '../../../src/policies/kinds/index.ts'
import type { TextPolicy } from '../../../src/policies/kinds/kind.ts'
import { findInTexts } from '../../../src/policies/stages/find-in-texts.ts'
import { hostileBodies } from './hostile-texts.ts'

const units = 48 * 1024
const mostUnits = 16 * 1024
const mostMoves = 256 * 1024

const configs: Readonly<Record<string, Record<string, unknown>>> = {
  'prompt-injection': { action: 'redact' },
  'term-filter': { terms: ['swordfish', 'aaaaaaaaab', 'pé'], action: 'redact' },
  'pattern-filter': { patterns: [{ name: 'A', pattern: '(?:\\w+\\s+){1,40}zebra' }], action: 'redact' },
  pii: { action: 'redact' },
  secrets: { action: 'redact' },
}

interface Done {
  units: number
  moves: number
}

/** The policy, and what it did since the clock was looked at last. */
function watched(compiled: TextPolicy): { policy: TextPolicy; work: WorkBudget; take(): Done } {
  const { matcher } = compiled
  const work = new WorkBudget()
  let read = 0
  let moves = 0
  const counting = (text: string): string => {
    read += text.length
    return text
  }
  return {
    work,
    policy: {
      ...compiled,
      matcher: {
        ...matcher,
        mayMatch: (text) => matcher.mayMatch(counting(text)),
        follow: (given) => {
          const follower = matcher.follow(given)
          return { push: (piece, last) => follower.push(counting(piece), last) }
        },
      },
    },
    take() {
      const done = { units: read, moves: work.moves - moves }
      read = 0
      moves = work.moves
      return done
    },
  }
}

test.each(Object.entries(configs))('%s reads a bounded part of any text before it yields', async (kind, config) => {
  const compiled = policyKinds.get(kind)?.compile(config, { stages: ['pre_request'] })
  if (compiled?.form !== 'text') throw new Error('The policy reads no text')
  const most: Done = { units: 0, moves: 0 }
  for (const { body } of hostileBodies(units)) {
    const { policy, work, take } = watched(compiled)
    const rule = {
      ...{ policyId: 'p', kind, reasonCode: policy.reasonCode, matcher: policy.matcher, action: policy.action, work },
      ...{ enforced: true, replacement: () => '[X]' },
    }
    let now = 0
    const note = () => {
      const done = take()
      most.units = Math.max(most.units, done.units)
      most.moves = Math.max(most.moves, done.moves)
      now += 1
      return now
    }
    try {
      await findInTexts(policy, rule, chat.requestText(body), { now: note, tools: { throwIfCut: () => undefined } })
    } catch (error) {
      if (!(error instanceof WorkBudgetExceeded)) throw error
    }
    note()
  }
  expect(most.units).toBeGreaterThan(0)
  expect(most.units).toBeLessThanOrEqual(mostUnits)
  expect(most.moves).toBeLessThanOrEqual(mostMoves)
})
