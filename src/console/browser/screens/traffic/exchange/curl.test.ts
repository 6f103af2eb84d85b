import { expect, test } from 'bun:test'
import { type Event, noAttribution } from '../../../../../events/event.ts'
import { curlOf } from './curl.ts'

const outcome = (route: string, prompt?: string): Event => ({
  event_id: '0198a7c4-0000-7000-8000-000000000001',
  event_type: 'gateway.request.outcome',
  ...{
    request_id: null,
    timestamp: '2026-11-23T12:00:00.000Z',
    verdict: 'allow',
    reason_code: 'ok',
    config_version: 1,
  },
  event_attribution: noAttribution,
  details: { route, model: "it's/gpt" },
  ...(prompt === undefined ? {} : { prompt_redacted: prompt }),
})

/** The arguments that a shell makes of a command. */
async function argumentsOf(command: string): Promise<string[]> {
  const script = `curl() { printf '%s\\0' "$@"; }\n${command}`
  const env = { GATEHOUSE_URL: 'http://gate', GATEHOUSE_TOKEN: 'secret' }
  const run = Bun.spawn(['sh', '-c', script], { env, stdout: 'pipe' })
  return (await new Response(run.stdout).text()).split('\0').slice(0, -1)
}

test('a shell reads the command as the address, the headers and the body of the request', async () => {
  const text = `it's "quoted" $HOME \`id\`\nnext`
  const read = await argumentsOf(curlOf(outcome('POST /v1/messages', text)) ?? '')
  expect(read.slice(0, 3)).toEqual(['http://gate/v1/messages', '-H', 'Authorization: Bearer secret'])
  expect(JSON.parse(read.at(-1) ?? '')).toEqual({
    model: "it's/gpt",
    max_tokens: 1024,
    messages: [{ role: 'user', content: text }],
  })
})

test('a request without captured text has a placeholder, and a route without a prompt has no command', () => {
  expect(curlOf(outcome('POST /v1/responses'))).toContain('Write the prompt here')
  expect(curlOf(outcome('POST /v1/files'))).toBeNull()
})
