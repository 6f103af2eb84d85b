import { expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { type ControlPlaneHostFacts, controlPlaneHostChecks, freeBytes } from './control-plane-host.ts'
import { examine } from './finding.ts'

const day = 86_400_000
const mebibyte = 1024 * 1024
const facts: ControlPlaneHostFacts = {
  ...{ now: 100 * day, free: null, lastBackupAt: null, rotation: 'none', archive: null },
  checkpointLength: 0,
}
const said = (change: Partial<ControlPlaneHostFacts>) =>
  examine(controlPlaneHostChecks, { ...facts, ...change }).map(({ level, what }) => `${level} ${what}`)

test('says nothing where nothing is wrong or nothing is known', () => {
  expect(said({})).toEqual([])
  expect(said({ free: 2048 * mebibyte, lastBackupAt: 99 * day, rotation: 'running' })).toEqual([])
})

test('warns of little space, and fails where there is hardly any', () => {
  expect(said({ free: 900 * mebibyte })).toEqual([
    'warn The data directory of the control plane has 900 MiB left, less than 1024',
  ])
  expect(said({ free: 90 * mebibyte })).toEqual([
    'fail The data directory of the control plane has 90 MiB left, less than 128',
  ])
  expect(freeBytes(tmpdir())).toBeGreaterThan(0)
  expect(freeBytes('/there/is/no/such/folder')).toBeNull()
})

test('warns of an old backup and of a rotation that waits for its operator', () => {
  expect(said({ lastBackupAt: 90 * day })).toEqual(['warn The last backup is 10 days old, more than 7'])
  expect(said({ rotation: 'ready' })).toEqual(['warn SERVICE_MASTER_KEY_NEXT is set and not used yet'])
  expect(said({ rotation: 'complete' })).toEqual([
    'warn The master key was rotated, and the former one is still the setting',
  ])
})

test('warns before the checkpoint is too long to compare, and fails when it is', () => {
  expect(said({ checkpointLength: 12 * mebibyte })).toEqual([])
  expect(said({ checkpointLength: 14 * mebibyte })).toEqual([
    'warn The checkpoint of all chains has 87 % of the length up to which gateways compare it',
  ])
  expect(said({ checkpointLength: 17 * mebibyte })).toEqual([
    'fail The checkpoint of all chains is too long: gateways no longer notice that the record was rewritten',
  ])
})

test('says how long events wait for ClickHouse, and why where ClickHouse says it', () => {
  const archive = { state: 'ready', records: 0, seconds: 0, inTheClear: false } as const
  expect(said({ archive })).toEqual([])
  expect(said({ archive: { ...archive, records: 5, seconds: 899 } })).toEqual([])
  expect(said({ archive: { ...archive, records: 5, seconds: 1200 } })).toEqual([
    'warn ClickHouse answers, and 5 records wait for it in the ledger, the oldest for 20 min',
  ])
  expect(said({ archive: { ...archive, state: 'away' } })).toEqual([
    'warn ClickHouse does not answer: 0 records wait for it in the ledger, the oldest for 0 min',
  ])
  expect(said({ archive: { ...archive, state: 'away', records: 9, seconds: 6 * 3600 } })).toEqual([
    'fail ClickHouse does not answer: 9 records wait for it in the ledger, the oldest for 360 min',
  ])
  expect(said({ archive: { ...archive, inTheClear: true } })).toEqual([
    'warn Events and the password of ClickHouse cross the network in clear text',
  ])
  expect(said({ archive: { ...archive, state: 'refused' } })).toEqual([
    'fail ClickHouse refuses the user that is to keep events: 0 records wait for it in the ledger, the oldest for 0 min',
  ])
})

test('fails where records that wait for ClickHouse fill the disk within a day', () => {
  const archive = { state: 'away', records: 7_200_000, seconds: 7200, inTheClear: false } as const
  const waiting = 'ClickHouse does not answer: 7200000 records wait for it in the ledger, the oldest for 120 min'
  // 1000 records a second are 310 000 bytes a second.
  expect(said({ archive, free: 310_000 * 86_400 })).toEqual([`warn ${waiting}`])
  expect(said({ archive, free: 310_000 * 3600 * 13.5 })).toEqual([
    `fail ${waiting}; at this rate the disk is full within 14 h`,
  ])
  expect(said({ archive })).toEqual([`warn ${waiting}`])
  expect(said({ archive: { ...archive, records: 1000, seconds: 1 }, free: 2048 * mebibyte })).toEqual([
    'warn ClickHouse does not answer: 1000 records wait for it in the ledger, the oldest for 0 min',
  ])
  expect(said({ archive: { ...archive, state: 'ready', seconds: 600 }, free: 2048 * mebibyte })).toEqual([])
})
