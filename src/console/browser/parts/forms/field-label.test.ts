import { expect, test } from 'bun:test'
import { z } from 'zod'
import { policyKinds } from '../../../../policies/kinds/index.ts'

// A browser has them.
Object.defineProperty(navigator, 'languages', { value: ['en'], configurable: true })
const { fieldLabel } = await import('./field-label.ts')

const source = `${import.meta.dir}/../../../../`

/** The schemas of every form: the bodies of records that are made and changed, and the configs of policies. */
async function schemasOfForms(): Promise<z.ZodType[]> {
  const found: z.ZodType[] = [...policyKinds.values()].map(({ config }) => config)
  for await (const path of new Bun.Glob('**/*-resource.ts').scan(source)) {
    const exported: Record<string, unknown> = await import(`${source}${path}`)
    for (const value of Object.values(exported)) {
      if (typeof value !== 'object' || value === null) continue
      for (const body of [Reflect.get(value, 'create'), Reflect.get(value, 'update')])
        if (body instanceof z.ZodType) found.push(body)
    }
  }
  return found
}

/** The names of all members, at every depth. */
function membersOf(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const properties: unknown = Reflect.get(schema, 'properties')
  const names = typeof properties === 'object' && properties !== null ? Object.keys(properties) : []
  return [...names, ...Object.values(schema).flatMap(membersOf)]
}

const isRaw = (label: string): boolean => !/^[A-Z]/.test(label) || /[_.]|[a-z][A-Z]/.test(label.replace('OAuth', ''))

/** Written as if they were words. */
const abbreviations =
  /\b(?:[Uu]rls?|[Jj]wt|[Jj]wks|[Aa]pi|[Mm]cp|[Cc]el|[Ss]cim|[Oo]auth|[Jj]son|[Tt]ls|[Ss]mtp|[Uu]sd|[Aa]ws)\b/

test('no field of a form is labelled by a raw identifier', async () => {
  const schemas = await schemasOfForms()
  const names = new Set(
    schemas.flatMap((schema) => membersOf(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }))),
  )
  expect(names.size).toBeGreaterThan(80)
  const wrong = [...names].map(fieldLabel).filter((label) => isRaw(label) || abbreviations.test(label))
  expect(wrong).toEqual([])
})
