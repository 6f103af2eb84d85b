/** What `languages.md` says is carried, left out or refused is so. */
import { describe, expect, test } from 'bun:test'
import { Failure } from '../failure.ts'
import { languages } from './index.ts'
import { features } from './language.ts'
import type { NeutralRequest } from './neutral.ts'
import { plainRequest, sampleField, sampleOf } from './test-samples.ts'

const names = Object.keys(features).filter((name): name is keyof typeof features => name in features)

/** Without what a feature is about: the same request in which nothing of it is said. */
const unmarked = (request: Partial<NeutralRequest>): string =>
  JSON.stringify(request, (name, value) => (['cache', 'signature', 'citations'].includes(name) ? undefined : value))

for (const { provider, features: table } of Object.values(languages)) {
  describe(`as a provider, ${provider.name}`, () => {
    const samples = sampleOf(provider.name)
    const plain = JSON.stringify(provider.writeRequest(plainRequest))

    for (const feature of names) {
      const sample = samples[feature]
      if (sample === null) continue
      const request: NeutralRequest = { ...plainRequest, ...sample }
      const support = table[feature]
      if ('refused' in support) {
        test(`refuses ${feature}, naming the field`, () => {
          const write = () => provider.writeRequest(request)
          expect(write).toThrow(Failure)
          expect(write).toThrow(expect.objectContaining({ code: 'translation_unsupported', param: sampleField }))
        })
      } else if ('withoutEffect' in support) {
        test(`leaves out ${feature}`, () => {
          const written = JSON.stringify(provider.writeRequest(request))
          const without: NeutralRequest = { ...plainRequest, ...JSON.parse(unmarked(sample)) }
          const bare = without.turns.map((turn) => ({
            ...turn,
            parts: turn.parts.filter(({ kind }) => kind !== 'thought'),
          }))
          expect(written).toBe(JSON.stringify(provider.writeRequest({ ...without, turns: bare })))
        })
      } else {
        test(`carries ${feature}`, () => {
          expect(JSON.stringify(provider.writeRequest(request))).not.toBe(plain)
        })
      }
    }
  })
}

for (const { caller, members } of Object.values(languages)) {
  if (caller === null || members === undefined) continue
  const question =
    caller.name === 'responses'
      ? { model: 'm', input: 'hi' }
      : { model: 'm', messages: [{ role: 'user', content: 'hi' }] }

  describe(`of a ${caller.name} request`, () => {
    const refusal = (param: string) => expect.objectContaining({ code: 'translation_unsupported', param })

    test('a member that nobody has heard of is refused by its name', () => {
      expect(() => caller.readRequest({ ...question, brand_new: 1 })).toThrow(refusal('brand_new'))
    })

    for (const [member, treatment] of Object.entries(members)) {
      if (treatment === 'carried') continue
      if ('withoutEffect' in treatment) {
        test(`${member} changes nothing`, () => {
          expect(caller.readRequest({ ...question, [member]: {} })).toEqual(caller.readRequest(question))
        })
        continue
      }
      test(`${member} is refused by its name, but for the values that change nothing`, () => {
        expect(() => caller.readRequest({ ...question, [member]: 'anything else' })).toThrow(refusal(member))
        for (const value of treatment.onlyAs ?? []) {
          expect(caller.readRequest({ ...question, [member]: value })).toEqual(caller.readRequest(question))
        }
        expect(caller.readRequest({ ...question, [member]: null })).toEqual(caller.readRequest(question))
      })
    }
  })
}
