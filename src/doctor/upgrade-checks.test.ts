import { expect, test } from 'bun:test'
import { examine } from './finding.ts'
import type { WorkerFacts } from './installation-facts.ts'
import { type DataFacts, type UpgradeFacts, upgradeChecks } from './upgrade-checks.ts'

const now = Date.parse('2026-05-01T12:00:00Z')
const hour = 3_600_000

const worker = (version: string): WorkerFacts => ({
  worker: 'edge/1/0',
  gateway_name: 'shop',
  version,
  connected: true,
  acknowledged_version: 7,
  state_version: 7,
  last_heartbeat_at: null,
  serves_until: null,
  left_at: null,
})
const data: DataFacts = {
  pending: ['state 0003_more'],
  readsFrom: null,
  faults: [],
  lastBackup: { madeAt: now - hour, file: '/backups/monday' },
}
const facts: UpgradeFacts = { now, version: '1.2.0', controlPlane: '1.1.0', workers: [worker('1.1.0')], data }

const said = (change: Partial<UpgradeFacts>) =>
  examine(upgradeChecks, { ...facts, ...change }).map(({ level, what }) => `${level} ${what}`)
const ofData = (change: Partial<DataFacts>) => said({ data: { ...data, ...change } })

test('says what an upgrade does and in which order, where nothing is wrong', () => {
  expect(said({})).toEqual([
    'ok The control plane is upgraded from 1.1.0 to 1.2.0',
    'ok After the control planes, upgrade the gateways of these workers: edge/1/0 of shop (version 1.1.0)',
    'ok A start runs the migrations state 0003_more: after it, only a backup leads back',
    'ok The last backup is 1 hours old: /backups/monday',
  ])
})

test('refuses a downgrade, and a gateway that is newer than its control plane', () => {
  expect(said({ controlPlane: '1.3.0' })[0]).toBe(
    'fail The control plane is of version 1.3.0, and this executable is the older 1.2.0: a downgrade is refused',
  )
  expect(said({ workers: [worker('1.2.0')] })[1]).toContain('fail Worker edge/1/0 of shop (version 1.2.0) is newer')
})

test('names gateways that cannot read the state after its migrations', () => {
  expect(ofData({ readsFrom: '1.1.5' })).toContain(
    'fail Worker edge/1/0 of shop (version 1.1.0) cannot read the state after the upgrade: that needs 1.1.5 or later',
  )
})

test('asks for a backup of the last day', () => {
  expect(ofData({ lastBackup: 'none' })).toContain('fail No backup was made of this data directory')
  expect(ofData({ lastBackup: { madeAt: now - 30 * hour, file: 'f' } })).toContain(
    'fail The last backup is 30 hours old: f',
  )
  expect(ofData({ lastBackup: 'elsewhere' }).at(-1)).toContain('warn The databases are on servers')
})

test('says what a start would refuse, and nothing of what is not known', () => {
  const fault = { level: 'fail', what: 'A start would be refused: x', todo: 'y' } as const
  expect(ofData({ pending: null, faults: [fault] })).toContain('fail A start would be refused: x')
  expect(said({ controlPlane: null, workers: null, data: null })).toEqual([])
})
