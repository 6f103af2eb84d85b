import { heapStats } from 'bun:jsc'
import { expect, spyOn, test } from 'bun:test'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import { compilePolicySet } from '../chain.ts'
import { ruleOf } from '../redaction.ts'
import type { StoredPolicy } from '../stored-policy.ts'
import { findInTexts } from './find-in-texts.ts'

const stored: StoredPolicy = {
  ...{ id: 'p', kind: 'term-filter', stages: ['pre_request'], config: { terms: ['swordfish'], action: 'redact' } },
  ...{ when: null, targets: {}, position: 1, mode: 'enforce', whenBroken: 'deny', enabled: true, version: 1 },
}

function find(texts: readonly string[], action = 'redact', throwIfCut: () => void = () => undefined) {
  const subject = { organizationId: 'o', gatewayId: 'g', tokenId: 't', teamId: null, policyIds: [], model: '' }
  const set = compilePolicySet([{ ...stored, config: { terms: ['swordfish'], action } }])
  const [policy] = set.chainFor({ ...subject, family: 'chat' }).at('pre_request')
  const compiled = policy?.compiled
  if (policy === undefined || compiled === undefined || compiled instanceof Error || compiled.form !== 'text') {
    throw new Error('The policy reads no text')
  }
  const slots = texts.map(
    (text): TextSlot => ({ member: 'm', kind: 'content', role: 'user', text, replace: () => undefined }),
  )
  let now = 0
  const rule = ruleOf(policy, compiled, null)
  const follow = spyOn(rule.matcher, 'follow')
  const found = findInTexts(compiled, rule, slots, { now: () => (now += 3), tools: { throwIfCut } })
  return { found, slots, follow }
}

const changed = (decision: Awaited<ReturnType<typeof find>['found']>) =>
  decision?.changes?.map((change) => ('slot' in change ? change.text : null))

test('finds the same in long texts as in short ones at every piece boundary, and yields between pieces', async () => {
  const word = 'swordfish '
  const long = word.repeat(30_000)
  const { found } = find([long, 'nothing', word])
  let turns = 0
  let isOver = false
  const count = () => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  expect(found).toBeInstanceOf(Promise)
  const decision = await found
  isOver = true
  expect(turns).toBeGreaterThan(5)
  expect(changed(decision)).toEqual([long.replaceAll('swordfish', '[TERM]'), '[TERM] '])
  expect(decision).toMatchObject({ verdict: 'redact', targets: ['m: TERM (terms[0])'] })
})

const stringsKept = () => {
  Bun.gc(true)
  return heapStats().objectTypeCounts.string ?? 0
}

test('assembles a text full of findings while it reads', async () => {
  const { found } = find(['swordfish '.repeat(50_000)])
  const before = stringsKept()
  const decision = await found
  expect(stringsKept() - before).toBeLessThan(10_000)
  expect(changed(decision)?.[0]).toStartWith('[TERM] [TERM]')
})

test('reads short texts at once and stops reading when the chain is stopped', async () => {
  const { found } = find(['a swordfish'])
  expect(changed(await found)).toEqual(['a [TERM]'])
  expect(found).not.toBeInstanceOf(Promise)
  const blocked = await find(['x'.repeat(200_000), 'swordfish', 'swordfish'], 'block').found
  expect(blocked).toMatchObject({ verdict: 'block', changes: [] })
})

test('scans only texts that may hold a match', async () => {
  const { found, follow } = find(['', 'x'.repeat(200_000), '', 'a swordfish', 'nothing'])
  expect(changed(await found)).toEqual(['a [TERM]'])
  expect(follow).toHaveBeenCalledTimes(1)
})

test('stops at the next yield once the exchange is cut', async () => {
  const cut = new Error('cut')
  let asked = 0
  const throwIfCut = () => {
    asked += 1
    if (asked === 3) throw cut
  }
  const { found } = find(['swordfish '.repeat(50_000)], 'redact', throwIfCut)
  expect(await Promise.resolve(found).catch((error: unknown) => error)).toBe(cut)
  expect(asked).toBe(3)
})
