/** What records are called, by their ids. Each is asked for once; one that this caller may not read is shown by its id. */
import type { Api } from './api.ts'
import { namedSchema, namesOf } from './record-names.ts'

export interface NameBook {
  /** Asks for those that are not known yet. `collection` is where the records are: `/v1/tokens`. */
  learn(collection: string, ids: Iterable<string>): Promise<void>
  /** The name, or the id where there is none. */
  nameOf(id: string): string
}

export function nameBook(api: Pick<Api, 'json'>): NameBook {
  const names = new Map<string, string>()
  return {
    async learn(collection, ids) {
      const unknown = [...new Set(ids)].filter((id) => !names.has(id))
      const ask = async (id: string) => {
        // Names are an addition: what is not told is shown by its id.
        const record = await api.json({ path: `${collection}/${id}` }, namedSchema).catch(() => null)
        names.set(id, (record === null ? [] : namesOf(record))[0] ?? id)
      }
      await Promise.all(unknown.map(ask))
    },
    nameOf: (id) => names.get(id) ?? id,
  }
}
