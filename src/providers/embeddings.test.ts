import { expect, test } from 'bun:test'
import { geminiEmbeddings } from '../languages/gemini/embeddings.ts'
import { embed } from './embeddings.ts'

test('long answers leave others their turn while they are read and written', async () => {
  const values = Array.from({ length: 4096 }, (_, place) => place / 4096)
  const said = JSON.stringify({ embeddings: Array(100).fill({ values }), usageMetadata: { promptTokenCount: 1 } })
  const request = { model: 'm', input: Array(300).fill('t') }
  let turns = 0
  const others = setInterval(() => {
    turns += 1
  }, 0)
  const call = {
    ...{ family: 'embeddings' as const, model: 'm', stream: false, contentType: 'application/json', headers: {} },
    ...{ body: Buffer.from(JSON.stringify(request)), signal: new AbortController().signal, answerLimit: 1e9 },
  }
  const answer = await embed(geminiEmbeddings('models/m'), call, async () => new Response(said))
  clearInterval(others)
  // One for each piece of about eight vectors.
  expect(turns).toBeGreaterThan(20)
  const { data } = JSON.parse(await answer.text())
  expect(data).toHaveLength(300)
  expect(data[299]).toEqual({ object: 'embedding', index: 299, embedding: values })
})
