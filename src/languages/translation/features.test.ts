/** What `languages.md` says is carried, left out or refused is so. */
import { describe, expect, test } from 'bun:test'
import { Failure } from '../../failure.ts'
import type { LanguageName, NeutralRequest } from '../neutral.ts'
import type { JsonObject } from '../reading/json-value.ts'
import { plainFor, refusedBeside, sampleField, sampleOf } from '../testing/samples.ts'
import { type Feature, features } from '../translation-language.ts'
import { languages } from './languages.ts'
import { Lenience } from './lenience.ts'

const names = Object.keys(features).filter((name): name is keyof typeof features => name in features)

/** Members that a feature adds to what another is about. */
const marks: Partial<Record<Feature, string>> = {
  cache_marker: 'cache',
  call_signature: 'signature',
  citations: 'citations',
  document_citations: 'citations',
  image_detail: 'detail',
  strict_tools: 'strict',
  tool_errors: 'isError',
}

/** The same request in which nothing of the feature is said. */
function bareOf(feature: Feature, sample: Partial<NeutralRequest>, plain: NeutralRequest): NeutralRequest {
  const thoughtless = (value: unknown) => Array.isArray(value) && value.some((part) => part?.kind === 'thought')
  const bare = JSON.stringify(sample, (name, value) => {
    if (name === marks[feature]) return typeof value === 'boolean' && name !== 'strict' ? false : undefined
    return thoughtless(value) ? value.filter(({ kind }: { kind: string }) => kind !== 'thought') : value
  })
  return bare === JSON.stringify(sample) ? plain : { ...plain, ...JSON.parse(bare) }
}

/** Values that are left out, of members that are not left out with every value. */
const sampleLeftOut: Readonly<Record<string, unknown>> = {
  include: ['web_search_call.action.sources'],
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
}

function expectRefusal(write: () => unknown): void {
  expect(write).toThrow(Failure)
  expect(write).toThrow(expect.objectContaining({ code: 'translation_unsupported', param: sampleField }))
}

for (const { provider, features: table } of Object.values(languages)) {
  describe(`as a provider, ${provider.name}`, () => {
    const samples = sampleOf(provider.name)
    const plain = plainFor(provider.name)
    const written = (request: NeutralRequest) => JSON.stringify(provider.writeRequest(request))

    for (const feature of names) {
      const sample = samples[feature]
      if (sample === null) continue
      const request: NeutralRequest = { ...plain, ...sample }
      const support = table[feature]
      if ('refused' in support && !('as' in support)) {
        test(`refuses ${feature}, naming the field`, () => {
          const write = () => provider.writeRequest(request)
          expectRefusal(write)
        })
      } else if ('withoutEffect' in support) {
        test(`leaves out ${feature}`, () => {
          expect(written(request)).toBe(written(bareOf(feature, sample, plain)))
        })
      } else {
        test(`carries ${feature}`, () => {
          expect(written(request)).not.toBe(written(bareOf(feature, sample, plain)))
        })
        const beside = refusedBeside[provider.name][feature]
        test(`refuses the parts of ${feature} that the table lists`, () => {
          expect(beside !== undefined).toBe(support.refused !== undefined)
          if (beside !== undefined) expectRefusal(() => provider.writeRequest({ ...plain, ...beside }))
        })
      }
    }
  })
}

for (const { caller, members } of Object.values(languages)) {
  if (caller === null || members === undefined) continue
  const questions: Partial<Record<LanguageName, JsonObject>> = {
    responses: { model: 'm', input: 'hi' },
    gemini: { model: 'm', contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  }
  const question = questions[caller.name] ?? { model: 'm', messages: [{ role: 'user', content: 'hi' }] }

  describe(`of a ${caller.name} request`, () => {
    const refusal = (param: string) => expect.objectContaining({ code: 'translation_unsupported', param })

    test('refuses an unknown member and names it', () => {
      expect(() => caller.readRequest({ ...question, brand_new: 1 })).toThrow(refusal('brand_new'))
    })

    for (const [member, { translation }] of Object.entries(members)) {
      if (translation === undefined) {
        test(`${member} is refused by its name: it is not known to other providers`, () => {
          expect(() => caller.readRequest({ ...question, [member]: {} })).toThrow(refusal(member))
        })
        continue
      }
      if (translation === 'carried') continue
      if ('hint' in translation) {
        test(`${member} is carried to the OpenAI languages, and left out elsewhere`, () => {
          const request = caller.readRequest({ ...question, [member]: 'h' })
          const sent = Object.values(languages).filter(({ provider }) => provider.writeRequest(request)[member] === 'h')
          expect(sent.map(({ provider }) => provider.name)).toEqual(['chat', 'responses'])
        })
        continue
      }
      if ('withoutEffect' in translation) {
        test(`${member} is left out without effect`, () => {
          expect(caller.readRequest({ ...question, [member]: {} })).toEqual(caller.readRequest(question))
        })
        continue
      }
      if ('leftOut' in translation) {
        test(`${member} is left out and noted by a lenient translation only`, () => {
          const value = sampleLeftOut[member] ?? 'anything else'
          const lenience = new Lenience()
          expect(caller.readRequest({ ...question, [member]: value }, lenience)).toEqual(caller.readRequest(question))
          expect(lenience.notes).toEqual([`translation.left_out:${member}`])
          if (translation.otherwise === undefined) return
          const read = () => caller.readRequest({ ...question, [member]: 'anything else' }, lenience)
          expect(read).toThrow(refusal(member))
        })
      }
      test(`${member} is refused by name, except for values without effect`, () => {
        expect(() => caller.readRequest({ ...question, [member]: 'anything else' })).toThrow(refusal(member))
        for (const value of translation.onlyAs ?? []) {
          expect(caller.readRequest({ ...question, [member]: value })).toEqual(caller.readRequest(question))
        }
        expect(caller.readRequest({ ...question, [member]: null })).toEqual(caller.readRequest(question))
      })
    }
  })
}
