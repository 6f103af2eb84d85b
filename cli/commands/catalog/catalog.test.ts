import { afterAll, beforeEach, expect, test } from 'bun:test'
import { isObject } from '../../../src/languages/reading/json-value.ts'
import { type Command, runCommandLine } from '../../command/command.ts'
import type { Input } from '../../terminal/input.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { type RecordingTerminal, recordingTerminal } from '../../testing/terminal.ts'
import { gatewayCommands } from './gateway.ts'
import { modelCommands } from './model.ts'
import { providerCommands } from './provider.ts'

const providerId = '01990000-0000-7000-8000-000000000001'
const control = recordingControlPlane(({ method, path, target, body }) => {
  if (path.endsWith('/test')) {
    const steps = [
      { step: 'models', ok: true, message: 'It lists 2 models', milliseconds: 1 },
      { step: 'chat', ok: null, message: 'No model', milliseconds: 1 },
    ]
    return { provider: 'second', model: null, ok: isObject(body) && body.model === 'good', steps }
  }
  if (path === '/v1/gateways/g1/bounds') return { max_instances: 2, addresses: ['127.0.0.1'] }
  if (path !== '/v1/catalog/providers' || method !== 'GET') return { id: 'made', name: 'n' }
  const isFirst = target === path
  return isFirst
    ? { providers: [{ id: 'p', name: 'first' }], next_cursor: 'more' }
    : { providers: [{ id: providerId, name: 'second' }], next_cursor: null }
})
const { requests } = control
afterAll(() => control.stop())
beforeEach(() => {
  requests.length = 0
})

const typing = (line: string): Input => ({ interactive: false, line: async () => line, hiddenLine: async () => line })

async function run(
  group: (terminal: RecordingTerminal, input: Input) => Command,
  rawArguments: string[],
  { typed = '', environment = {} }: { typed?: string; environment?: Record<string, string> } = {},
) {
  const terminal = recordingTerminal({ environment: { ...control.environment, ...environment } })
  await runCommandLine(group(terminal, typing(typed)), rawArguments, terminal)
  return { out: terminal.written(), notes: terminal.noted() }
}

const named = ['--name', 'acme', '--kind', 'openai']

test('creates a provider with a key from standard input, and does not show the key', async () => {
  const { out, notes } = await run(providerCommands, ['create', ...named, '--api-key-stdin'], { typed: 'sk-piped\n' })
  expect(requests[0]).toMatchObject({
    method: 'POST',
    target: '/v1/catalog/providers',
    body: { name: 'acme', kind: 'openai', api_key: 'sk-piped' },
  })
  expect(out + notes).not.toContain('sk-piped')
})

test('takes a key and headers from environment variables, and refuses them as flags', async () => {
  const environment = { ACME_KEY: 'sk-named', ORG: 'org-1' }
  const flags = ['--api-key-env', 'ACME_KEY', '--header-env', 'X-Org=ORG', '--idle-timeout', '5']
  await run(providerCommands, ['create', ...named, ...flags], { environment })
  expect(requests[0]?.body).toEqual({
    name: 'acme',
    kind: 'openai',
    api_key: 'sk-named',
    headers: { 'X-Org': 'org-1' },
    timeouts: { idle_seconds: 5 },
  })
  for (const wrong of [
    ['--api-key', 'sk-flag'],
    ['--api-key-env', 'UNSET'],
    ['--api-key-env', 'ACME_KEY', '--api-key-stdin'],
    ['--header-env', 'X-Org'],
    ['--default-price', 'cheap'],
  ]) {
    const running = run(providerCommands, ['create', ...named, ...wrong], { environment })
    await expect(running).rejects.toMatchObject({ code: 'usage' })
  }
  expect(requests.length).toBe(1)
})

test('creates a provider of a preset, and suggests the nearest one for an unknown name', async () => {
  const environment = { GROQ_KEY: 'gsk-1' }
  await run(providerCommands, ['create', '--preset', 'groq', '--api-key-env', 'GROQ_KEY'], { environment })
  await run(providerCommands, ['create', '--preset', 'xai', '--no-allow-unlisted-models'])
  expect(requests.map(({ body }) => body)).toEqual([
    { preset: 'groq', api_key: 'gsk-1' },
    { preset: 'xai', allow_unlisted_models: false },
  ])
  await expect(run(providerCommands, ['create', '--preset', 'grok'])).rejects.toThrow('did you mean groq?')
})

test('changes the given fields, clears fields by name, and refuses an empty change', async () => {
  await run(providerCommands, ['update', 'p1', '--allow-unlisted-models', '--clear', 'timeouts', '--clear', 'base-url'])
  expect(requests[0]).toMatchObject({
    method: 'PATCH',
    target: '/v1/catalog/providers/p1',
    body: { allow_unlisted_models: true, timeouts: null, base_url: null },
  })
  await expect(run(providerCommands, ['update', 'p1'])).rejects.toMatchObject({ code: 'usage' })
  await expect(run(providerCommands, ['update', 'p1', '--clear', 'name'])).rejects.toMatchObject({ code: 'usage' })
})

test('tests a provider by its name, says what works, and fails where something does not', async () => {
  const { out } = await run(providerCommands, ['test', 'second', '--model', 'good'])
  expect(out).toBe('works    models  It lists 2 models\nskipped  chat    No model\n')
  expect(requests.at(-1)).toMatchObject({
    method: 'POST',
    target: `/v1/catalog/providers/${providerId}/test`,
    body: { model: 'good' },
  })
  await expect(run(providerCommands, ['test', providerId])).rejects.toThrow('second does not work yet')
  await expect(run(providerCommands, ['test', 'third'])).rejects.toMatchObject({ code: 'usage' })
})

test('creates a model at a provider named by its name, with lists in the given order', async () => {
  const flags = ['--provider', 'second', '--family', 'chat', '--fallback', 'b', '--fallback', 'a']
  const price = ['--price', '{"input_per_million":1,"output_per_million":2}']
  await run(modelCommands, ['create', 'maker/m', ...flags, ...price, '--max-output-tokens', '10'])
  expect(requests.at(-1)).toMatchObject({
    method: 'POST',
    target: '/v1/catalog/models',
    body: {
      id: 'maker/m',
      provider_id: providerId,
      families: ['chat'],
      fallbacks: ['b', 'a'],
      price: { input_per_million: 1, output_per_million: 2 },
      max_output_tokens: 10,
    },
  })
  await expect(run(modelCommands, ['create', 'm', '--provider', 'third'])).rejects.toMatchObject({ code: 'usage' })
})

test('encodes a slash of an id in the path', async () => {
  await run(modelCommands, ['update', 'maker/m', '--clear', 'fallbacks'])
  expect(requests[0]).toMatchObject({
    method: 'PATCH',
    target: '/v1/catalog/models/maker%2Fm',
    body: { fallbacks: null },
  })
})

test('asks for the price of a model by its id', async () => {
  expect((await run(modelCommands, ['price', 'maker/m', '--json'])).out).toBe('{"id":"made","name":"n"}\n')
  expect(requests[0]).toMatchObject({ method: 'GET', target: '/v1/catalog/models/maker%2Fm/price' })
})

test('creates and changes a gateway', async () => {
  await run(gatewayCommands, ['create', '--name', 'edge', '--provider', 'a', '--provider', 'b', '--prompt-caching'])
  await run(gatewayCommands, ['update', 'g1', '--no-prompt-caching', '--clear', 'providers'])
  expect(requests.map(({ body }) => body)).toEqual([
    { name: 'edge', providers: ['a', 'b'], prompt_caching: true },
    { prompt_caching: false, providers: null },
  ])
})

test('shows the bounds of a gateway, and changes only those that are given', async () => {
  await run(gatewayCommands, ['bounds', 'g1'])
  await run(gatewayCommands, ['bounds', 'g1', '--max-instances', '4', '--clear', 'addresses'])
  expect(requests.map(({ method, target, body }) => [method, target, body])).toEqual([
    ['GET', '/v1/gateways/g1/bounds', null],
    ['GET', '/v1/gateways/g1/bounds', null],
    ['PUT', '/v1/gateways/g1/bounds', { max_instances: 4, addresses: null }],
  ])
  requests.length = 0
  await run(gatewayCommands, ['bounds', 'g1', '--address', '10.0.0.0/8', '--address', '::1'])
  expect(requests.at(-1)?.body).toEqual({ max_instances: 2, addresses: ['10.0.0.0/8', '::1'] })
  await expect(run(gatewayCommands, ['bounds', 'g1', '--max-instances', '0'])).rejects.toThrow('--max-instances')
})

test('refuses to delete a record without --yes', async () => {
  for (const group of [providerCommands, modelCommands, gatewayCommands]) {
    await expect(run(group, ['delete', 'x'])).rejects.toMatchObject({ code: 'usage' })
    await run(group, ['delete', 'x', '--yes'])
  }
  expect(requests.map(({ method }) => method)).toEqual(['DELETE', 'DELETE', 'DELETE'])
})

test('gateway without a command serves a gateway, and refuses an unknown command', async () => {
  await expect(run(gatewayCommands, ['--drain-seconds', 'soon'])).rejects.toThrow('--drain-seconds')
  await expect(run(gatewayCommands, ['lst'])).rejects.toThrow('Unknown command')
  expect((await run(gatewayCommands, ['--help'])).out).toMatch(/list[\s\S]*--gateway-listen/)
})
