/** A service that is known by name, as the API shows it. */
import { z } from 'zod'
import { familyNames } from '../../languages/families.ts'

export const presetSchema = z.object({
  name: z.string().describe('What `preset` takes, and the name of its provider where no other is given'),
  title: z.string().describe('As people call the service'),
  address: z.string().nullable().describe('Where it is reached unless a base_url says otherwise'),
  address_needed: z.string().nullable().describe('Why it needs a base_url, and how to write it; null if it needs none'),
  key_variable: z.string().nullable().describe('The environment variable with its key, which a start registers'),
  key_needed: z.boolean().describe('False for servers of your own host, and where the host may have an account'),
  families: z.array(z.enum(familyNames)).describe('What it speaks itself; other families are translated'),
})
export type PresetRecord = z.infer<typeof presetSchema>
