/** The JSON schema of files, for editors: `# yaml-language-server: $schema=gatehouse.schema.json`. */
import { z } from 'zod'
import { kinds } from './kinds/kinds.ts'

export function fileSchema(): object {
  const lists = kinds.map(({ member, entry, one }) => [member, z.array(entry).describe(`Each ${one}`).optional()])
  const schema = z.strictObject(Object.fromEntries(lists)).describe('Records for gatehouse apply')
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', target: 'draft-7' })
}
