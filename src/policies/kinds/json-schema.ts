/** Requires an answer's text, or the arguments of a tool that it calls, to match a JSON Schema (draft 2020-12). */
import type { ValidateFunction } from 'ajv/dist/2020.js'
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import { WorkBudgetExceeded } from '../../inspection/work-budget.ts'
import type { PolicyStage } from '../../languages/families.ts'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import { withDoubles } from '../../lib/json/exact-json.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { capturing, type Decision, everyStage, type PolicyTools, policyKind } from './kind.ts'
import { SchemaSteps } from './schema-steps.ts'

const isOfAnswer = (stage: PolicyStage): boolean => stage !== 'pre_request'

const maxSchemaCharacters = 100_000
/** UTF-16 units of an answer's text that are parsed in one step. */
const longestText = 1024 * 1024
/** UTF-16 units of all texts that are checked without a pause. */
const unitsAtOnce = 16 * 1024

export const jsonSchema = policyKind({
  kind: 'json-schema',
  about:
    'Holds the body of a request, the text of an answer, or the arguments of a tool that is called to a JSON Schema',
  stages: everyStage,
  config: z.strictObject({
    schema: z.record(z.string(), z.json()).describe('JSON Schema, draft 2020-12, without references elsewhere'),
    applies_to: z
      .enum(['body', 'text', 'tool_arguments'])
      .default('text')
      .describe(
        'The request body; each text of the answer; the arguments of each tool that an answer calls, and at pre_request those of the MCP tool that the request calls',
      ),
    action: z.enum(['block', 'deny', 'escalate']).default('block'),
    ...capturing,
  }),
  compile: ({ schema, applies_to: appliesTo, action }, { stages }) => {
    const isFit = {
      body: (stage: PolicyStage) => stage === 'pre_request',
      text: isOfAnswer,
      tool_arguments: () => true,
    }
    if (!stages.every(isFit[appliesTo])) {
      const message = 'body goes with the stage pre_request, text with the others, tool_arguments with all'
      throw new Failure('invalid_parameter', { param: 'config.applies_to', message })
    }
    const isValid = validatorOf(schema)
    return {
      form: 'whole',
      consider({ stage, context, body, texts }, tools): Decision | null | Promise<Decision | null> {
        // A provider's refusal cannot have this form, so it is not checked.
        if (context.response !== null && context.response.status >= 400n) return null
        const decide = (targets: readonly string[]): Decision | null => {
          if (targets.length === 0) return null
          const message = `A policy holds this to a JSON Schema, which it does not match`
          return { verdict: action, reasonCode: 'policy.json_schema', message, targets: [...new Set(targets)] }
        }
        if (appliesTo === 'body') return decide(isValid(() => body) ? [] : ['body'])
        if (appliesTo === 'tool_arguments' && stage === 'pre_request') {
          const { name, arguments: given } = context.request.tool
          return name === '' || isValid(() => given) ? null : decide([`tools.${name}`])
        }
        const asked = texts.filter(({ kind, role }) =>
          appliesTo === 'text' ? kind === 'content' && role !== null : kind === appliesTo,
        )
        const isWrong = ({ text }: TextSlot) => !isValid(() => parsed(text))
        const isLong = asked.reduce((units, { text }) => units + text.length, asked.length) > unitsAtOnce
        if (isLong) return wrongInTurns(asked, isWrong, tools).then(decide)
        return decide(asked.filter(isWrong).map(({ member }) => member))
      },
    }
  },
})

/** The places of the invalid texts. Other work runs between two texts; rejects if it was cancelled meanwhile. */
async function wrongInTurns(
  slots: readonly TextSlot[],
  isWrong: (slot: TextSlot) => boolean,
  tools: PolicyTools,
): Promise<readonly string[]> {
  const wrong: string[] = []
  for (const slot of slots) {
    await yieldToEventLoop()
    tools.throwIfCut()
    if (isWrong(slot)) wrong.push(slot.member)
  }
  return wrong
}

/**
 * Patterns in a schema run on JavaScript's backtracking engine, which a crafted text can keep busy for minutes: they
 * are refused, as are references outside the schema.
 */
function compiled(schema: Record<string, unknown>, steps: SchemaSteps): ValidateFunction {
  const refused = (message: string, cause?: unknown) =>
    new Failure('invalid_parameter', { param: 'config.schema', message, cause })
  const text = JSON.stringify(schema)
  if (text.length > maxSchemaCharacters) throw refused(`A schema has at most ${maxSchemaCharacters} characters`)
  if (/"pattern":"|"patternProperties":/.test(text)) throw refused('A schema here has no pattern: use pattern-filter')
  // Loaded with the first schema: most installations have none, and start faster and smaller.
  const { Ajv2020 }: typeof import('ajv/dist/2020.js') = require('ajv/dist/2020.js')
  try {
    // Of the strict mode only one check is used: a misspelt keyword is an error.
    const taste = { strictTypes: false, strictTuples: false, strictRequired: false } as const
    const ajv = new Ajv2020({ strict: true, ...taste, validateFormats: false, logger: false })
    // Checked as it was given, then compiled with its steps counted.
    if (ajv.validateSchema(schema) !== true) throw new Error(ajv.errorsText())
    steps.addTo(ajv)
    return ajv.compile(steps.counted(schema))
  } catch (error) {
    throw refused(`The schema is not valid: ${error instanceof Error ? error.message : String(error)}`, error)
  }
}

/** The value of a JSON text; a text that is too long to parse in one step counts as too much work. */
function parsed(text: string): unknown {
  if (text.length > longestText) throw new WorkBudgetExceeded()
  return JSON.parse(text)
}

/** Whether a value matches the schema. Throws `WorkBudgetExceeded` if the check takes too long. */
function validatorOf(schema: Record<string, unknown>): (value: () => unknown) => boolean {
  const steps = new SchemaSteps()
  const validate = compiled(schema, steps)
  return (value) => {
    steps.begin()
    try {
      const found = value()
      steps.requireFew(found)
      return validate(withDoubles(found)) === true
    } catch (error) {
      if (error instanceof SyntaxError) return false
      throw error
    }
  }
}
