import { expect, test } from 'bun:test'
import { environmentName, loadSettings, secretSettings } from '../../src/config.ts'
import { gatewayProcessEnvironment } from './up.ts'

test('a gateway process is given no secret of the control plane', () => {
  const key = Buffer.alloc(32, 1).toString('base64')
  const secrets = [...secretSettings].map((name) => [environmentName(name), name.startsWith('master') ? key : 'a=b'])
  const urls = { SERVICE_STATE_URL: 'http://db:1', SERVICE_LEDGER_URL: 'http://db:2' }
  const events = { SERVICE_EVENTS_URL: 'https://events:1/gatehouse' }
  const environment = { ...Object.fromEntries(secrets), ...urls, ...events }
  const { settings } = loadSettings({ environment, flags: {} })
  const given = Object.keys(gatewayProcessEnvironment(settings))
  const secretNames = given.filter((name) => [...secretSettings].some((secret) => environmentName(secret) === name))
  expect(secretNames.toSorted()).toEqual(['SERVICE_API_TOKEN', 'SERVICE_OTLP_HEADERS'])
})
