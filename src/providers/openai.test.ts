import { expect, test } from 'bun:test'
import { baseOf, openai } from './openai.ts'

test('baseOf follows the convention of OPENAI_BASE_URL, which includes /v1', () => {
  expect(baseOf('http://host:11434')).toBe('http://host:11434/v1')
  expect(baseOf('http://host/')).toBe('http://host/v1')
  expect(baseOf('https://api.openai.com/v1/')).toBe('https://api.openai.com/v1')
  expect(baseOf('https://host/openai/v1')).toBe('https://host/openai/v1')
})

test('openai sends the bytes with the operator’s credential and headers, which nobody can override', async () => {
  const sent: { url: string; init: BunFetchRequestInit }[] = []
  const provider = {
    id: 'p',
    name: 'p',
    kind: 'openai',
    baseUrl: 'http://host/v1',
    apiKey: 'sk-operator',
    headers: { 'X-Org': 'ours' },
    allowUnlistedModels: true,
  }
  const call = {
    family: 'chat' as const,
    model: 'm',
    stream: false,
    body: new Uint8Array([1, 2]),
    contentType: 'application/json',
    headers: { 'x-org': 'theirs', accept: '*/*' },
    signal: new AbortController().signal,
  }
  await openai.send(provider, call, async (url, init) => {
    sent.push({ url, init })
    return new Response()
  })
  expect(sent[0]?.url).toBe('http://host/v1/chat/completions')
  expect(sent[0]?.init).toMatchObject({
    method: 'POST',
    redirect: 'manual',
    headers: {
      accept: '*/*',
      'accept-encoding': 'identity',
      authorization: 'Bearer sk-operator',
      'content-type': 'application/json',
      'x-org': 'ours',
    },
  })
  expect(sent[0]?.init.body).toBe(call.body)
})
