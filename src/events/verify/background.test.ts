import { afterEach, beforeEach, expect, test } from 'bun:test'
import { silentLog } from '../../lib/log/log.ts'
import { alterLine } from '../testing/alter-log.ts'
import { retentionDays, TestProof } from '../testing/proof.ts'
import { claimVerification, keeping, readVerifyReport, subjectOf, verifyIfDue } from './background.ts'
import type { VerifyLine } from './verify.ts'

const hour = 3_600_000
let proof: TestProof
beforeEach(async () => {
  proof = await TestProof.start()
})
afterEach(() => proof.store.remove())

const settings = { event_retention_days: retentionDays, verify_interval_seconds: 3600 }
/** A control plane's turn, an hour after the last one began. */
async function verifyByItself(): Promise<void> {
  const { state, ledger } = proof.store
  await ledger.write([{ sql: 'update verify_report set claimed_at = claimed_at - ?', args: [hour] }])
  const options = { state, ledger, clock: proof.clock, log: silentLog, settings, seen: () => null }
  await verifyIfDue(options, hour, new AbortController().signal)
}

/** Somebody verifies everything. */
async function verifyAll(): Promise<void> {
  const lines = (async function* (): AsyncGenerator<VerifyLine> {
    yield* await proof.verify()
  })()
  await Array.fromAsync(keeping(proof.store.ledger, lines, { whole: true, now: proof.now }))
}

const report = () => readVerifyReport(proof.store.ledger)
const found = async () => (await report()).findings.map(subjectOf)

/** Alters what the ledger names as a chain's digest. */
const alterChain = (gateway: number) =>
  proof.run(`update chains set digest = '${'0'.repeat(64)}' where chain = '${proof.worker(gateway)}'`)

test('one control plane at a time verifies, and the next one when the interval is over', async () => {
  const { ledger } = proof.store
  const claims = await Promise.all([1, 2, 3].map(() => claimVerification(ledger, hour)))
  expect(claims.filter((claimed) => claimed)).toHaveLength(1)
  await proof.run(`update verify_report set claimed_at = claimed_at - ${hour}`)
  expect([await claimVerification(ledger, hour), await claimVerification(ledger, hour)]).toEqual([true, false])
  // The clock of the database has gone back.
  await proof.run(`update verify_report set claimed_at = claimed_at + ${24 * hour}`)
  expect(await claimVerification(ledger, hour)).toBe(true)
})

test('verifies what came since the checkpoint that it ended with, and keeps what it finds', async () => {
  await proof.shipEvents(1, 40)
  await proof.sign()
  expect(await report()).toEqual({ examinedAt: null, coveredUntil: null, findings: [] })
  await verifyByItself()
  const first = await report()
  expect(first).toEqual({ examinedAt: proof.now, coveredUntil: proof.now, findings: [] })
  proof.now += 5 * hour
  await proof.shipEvents(2, 40)
  await proof.sign()
  await alterChain(2)
  await verifyByItself()
  expect(await found()).toEqual([`chain.head_altered ${proof.worker(2)}`])
  expect(await report()).toMatchObject({ examinedAt: proof.now, coveredUntil: proof.now })
})

test('reads what came since alone, so an older record that is altered later is found by a verification of everything', async () => {
  await proof.shipEvents(1, 20)
  await proof.sign()
  await verifyByItself()
  proof.now += hour
  await proof.shipEvents(1, 20)
  await proof.sign()
  await alterLine(proof.store.ledger, 3, (line) => ({ ...line, text: `${line.text} ` }))
  await verifyByItself()
  expect(await found()).toEqual([])
  await verifyAll()
  expect(await found()).toEqual([`event.altered ${proof.worker(1)}`])
  expect((await report()).findings).toMatchObject([{ from: 1, to: 20 }])
})

test('finds a record that was altered since the last time', async () => {
  await proof.shipEvents(1, 20)
  await proof.sign()
  await verifyByItself()
  await proof.shipEvents(1, 20)
  await proof.sign()
  await alterLine(proof.store.ledger, 33, (line) => ({ ...line, text: `${line.text} ` }))
  await verifyByItself()
  expect(await found()).toEqual([`event.altered ${proof.worker(1)}`])
})

test('a finding stays until a verification of everything finds it no more', async () => {
  await proof.shipEvents(1, 10)
  await proof.sign()
  const [before] = await proof.store.ledger.read<{ digest: string }>('select digest from chains')
  await alterChain(1)
  await verifyAll()
  const since = proof.now
  expect(await found()).toEqual([`chain.head_altered ${proof.worker(1)}`])
  proof.now += hour
  await proof.run(`update chains set digest = '${before?.digest}'`)
  await verifyByItself()
  expect((await report()).findings).toMatchObject([{ what: 'chain.head_altered', since }])
  await verifyAll()
  expect(await report()).toMatchObject({ examinedAt: proof.now, findings: [] })
})

test('a verification that broke off changes nothing', async () => {
  await proof.shipEvents(1, 10)
  await proof.sign()
  await alterChain(1)
  const aborted = new AbortController()
  aborted.abort()
  const { state, ledger } = proof.store
  const options = { state, ledger, clock: proof.clock, log: silentLog, settings, seen: () => null }
  await verifyIfDue(options, hour, aborted.signal)
  expect(await report()).toEqual({ examinedAt: null, coveredUntil: null, findings: [] })
})
