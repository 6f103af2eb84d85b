/**
 * The types of what a zod schema describes, for the check of conditions in CEL. Conditions are evaluated without them, on
 * plain objects, where a comparison of a text with a number gives false and a sum of unlike numbers fails. The check
 * refuses only conditions that are always true or always false.
 */
import type { Environment } from '@marcbachmann/cel-js'
import { z } from 'zod'

/** An environment that knows the type of each member of `variable`. It only checks: it evaluates nothing. */
export function typedEnvironment(
  variable: string,
  schema: z.ZodType,
  limits: { maxAstNodes: number; maxDepth: number },
): Environment {
  const { Environment: Made }: typeof import('@marcbachmann/cel-js') = require('@marcbachmann/cel-js')
  const made = new Made({ limits })
  const comparable = new Set<string>()
  const typeOf = (member: z.ZodType, path: string): string => {
    const described = bare(member)
    if (described instanceof z.ZodRecord && described.valueType instanceof z.ZodType) {
      return `map<string, ${typeOf(described.valueType, path)}>`
    }
    if (described instanceof z.ZodArray && described.element instanceof z.ZodType) {
      return `list<${typeOf(described.element, path)}>`
    }
    if (described instanceof z.ZodObject) return objectType(described, path)
    return plainTypes[described.def.type] ?? 'dyn'
  }
  const objectType = ({ shape }: z.ZodObject, path: string): string => {
    const fields = Object.fromEntries(
      Object.entries(shape).map(([name, member]) => {
        const type = member instanceof z.ZodType ? typeOf(member, `${path}_${name}`) : 'dyn'
        // Operators on maps cannot be added: whether one is there is asked with has().
        if (type !== 'dyn' && !type.startsWith('map<')) comparable.add(`${type} == null`)
        return [name, type]
      }),
    )
    made.registerType(path, { ctor: class {}, fields })
    comparable.add(`string in ${path}`)
    return path
  }
  made.registerVariable(variable, typeOf(schema, variable.toUpperCase()))
  // Numbers of JSON are compared with whole numbers as well.
  for (const operator of [...comparable, 'double == int', 'double in list<int>']) {
    made.registerOperator(operator, () => true)
  }
  return made
}

const plainTypes: Readonly<Record<string, string>> = {
  string: 'string',
  enum: 'string',
  literal: 'string',
  number: 'double',
  boolean: 'bool',
}

/** Without what makes it optional. */
export const bare = (schema: z.ZodType): z.ZodType => {
  const inner: unknown =
    schema instanceof z.ZodOptional || schema instanceof z.ZodNullable ? schema.unwrap() : undefined
  return inner instanceof z.ZodType ? bare(inner) : schema
}
