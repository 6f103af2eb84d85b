/** The matrix of coding agents and providers: the table is a golden file, and the handbook shows it. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { readPages } from '../../../src/handbook/read-pages.ts'
import { expectGolden } from '../../golden/golden-file.ts'
import { playMatrix, startInstallation } from './matrix.ts'
import { readProviderRequest } from './provider-request.ts'
import { tableOf } from './table.ts'

setDefaultTimeout(120_000)

/** Agents that meet a provider which refuses what they always send. */
const refused = ['opencode, model named claude at openai', 'opencode, model named claude at azure-openai']

test('every agent works with every provider, but for what the table names', async () => {
  await using installation = await startInstallation()
  const cells = await playMatrix(installation)
  const failed = cells.filter(({ faults }) => faults.length > 0)
  expect(failed.map(({ client, provider }) => `${client} at ${provider}`)).toEqual(refused)
  const table = tableOf(cells)
  await expectGolden('agents.md', table)
  const page = (await readPages()).find(({ path }) => path === 'clients')
  expect(page?.text).toContain(table.trim())
})

test('the scripted provider refuses unknown members and calls without a result', () => {
  const user = { role: 'user', content: 'Hello' }
  const plain = { model: 'm', messages: [user], stream: true, stream_options: { include_usage: true } }
  expect(readProviderRequest('chat', plain)).toEqual({ tools: [], parallel: true, calls: [], results: [] })
  const call = { id: 'call_1', type: 'function', function: { name: 'bash', arguments: '{}' } }
  const calling = { role: 'assistant', tool_calls: [call] }
  for (const wrong of [
    { ...plain, client_metadata: {} },
    { ...plain, stream_options: undefined },
    { ...plain, messages: [user, calling] },
    { ...plain, messages: [user, calling, user] },
    { ...plain, messages: [user, { role: 'tool', tool_call_id: 'call_1', content: 'x' }] },
    {
      ...plain,
      messages: [user, { ...calling, tool_calls: [{ ...call, function: { name: 'bash', arguments: '{' } }] }],
    },
  ])
    expect(() => readProviderRequest('chat', wrong)).toThrow()
  for (const wire of ['responses', 'messages', 'gemini', 'converse'] as const)
    expect(() => readProviderRequest(wire, plain)).toThrow()
})
