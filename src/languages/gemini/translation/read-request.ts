/**
 * Reads a caller's Gemini request, in the form of `request-form.ts`, into the neutral form. Every member has a row in
 * `members.ts`; a member without one is refused.
 */
import { efforts, type NeutralOutput, type NeutralReasoning, type NeutralRequest, type Stated } from '../../neutral.ts'
import { isGiven, type JsonObject } from '../../reading/json-value.ts'
import {
  arrayAt,
  checkMembers,
  objectAt,
  onlyMembers,
  statedBoolean,
  statedNumber,
  statedObject,
  statedString,
  stringAt,
  toolsWith,
} from '../../translation/field-readers.ts'
import { type Lenience, leaveOut, leaveOutTool } from '../../translation/lenience.ts'
import { numberReader } from '../../translation/settings.ts'
import { malformed, unsupported } from '../../translation/translation-errors.ts'
import { geminiMembers, settingPrefix } from '../members.ts'
import { instructionsOf, turnsOf } from './read-contents.ts'
import { jsonSchemaOf } from './schema.ts'

const readNumbers = numberReader(geminiMembers)

export function readGeminiRequest(body: Readonly<JsonObject>, lenience?: Lenience): NeutralRequest {
  checkMembers(body, geminiMembers, lenience)
  return {
    model: stringAt(body.model, 'model'),
    instructions: instructionsOf(body.systemInstruction),
    turns: turnsOf(body.contents),
    ...toolsOf(body, lenience),
    output: outputOf(body),
    reasoning: reasoningOf(body),
    sampling: samplingOf(body),
    endUser: null,
    stream: body.stream === true,
    extras: new Map(),
  }
}

const configMembers = new Set(['functionCallingConfig', 'retrievalConfig', 'includeServerSideToolInvocations'])
const callingMembers = new Set(['mode', 'allowedFunctionNames'])

type Tools = Pick<NeutralRequest, 'tools' | 'toolChoice' | 'parallelTools'>

function toolsOf(body: Readonly<JsonObject>, lenience: Lenience | undefined): Tools {
  const config = statedObject(body.toolConfig, 'toolConfig')?.value ?? {}
  onlyMembers(config, 'toolConfig', configMembers)
  const at = 'toolConfig.functionCallingConfig'
  const calling = statedObject(config.functionCallingConfig, at)?.value ?? {}
  onlyMembers(calling, at, callingMembers)
  const allowed = isGiven(calling.allowedFunctionNames)
    ? arrayAt(calling.allowedFunctionNames, `${at}.allowedFunctionNames`)
    : null
  const toolChoice = choiceOf(calling.mode, allowed, lenience)
  const given = isGiven(body.tools) ? declarationsIn(arrayAt(body.tools, 'tools')) : undefined
  const all = toolsWith(given, (tool, place) => toolOf(tool, place, lenience), { toolChoice, parallelTools: null })
  return allowed === null ? all : { ...all, tools: all.tools.filter(({ name }) => allowed.includes(name)) }
}

/** Each declaration as a tool, and each tool of the provider's own as `{type: 'googleSearch'}`. */
const declarationsIn = (tools: readonly unknown[]): unknown[] =>
  tools.flatMap((given, index) => {
    const tool = objectAt(given, `tools.${index}`)
    return Object.entries(tool).flatMap(([name, value]): unknown[] => {
      if (name === 'functionDeclarations') return [...arrayAt(value, `tools.${index}.${name}`)]
      return isGiven(value) ? [{ type: name }] : []
    })
  })

/** What a function returns is described for its caller alone, and how it runs for live sessions. */
const declarationMembers = new Set([
  ...['name', 'description', 'parameters', 'parametersJsonSchema', 'response', 'responseJsonSchema', 'behavior'],
])

function toolOf(tool: JsonObject, at: string, lenience: Lenience | undefined): NeutralRequest['tools'] {
  if (isGiven(tool.type)) {
    leaveOutTool(lenience, tool, at, 'only its own provider runs this tool')
    return []
  }
  onlyMembers(tool, at, declarationMembers)
  const declared = statedObject(tool.parameters, `${at}.parameters`)?.value
  const schema = statedObject(tool.parametersJsonSchema, `${at}.parametersJsonSchema`)?.value
  return [
    {
      name: stringAt(tool.name, `${at}.name`),
      description: statedString(tool.description, `${at}.description`)?.value ?? null,
      parameters: schema ?? (declared === undefined ? null : jsonSchemaOf(declared)),
      strict: null,
      at,
    },
  ]
}

/** The mode VALIDATED is AUTO with arguments that keep to their schema, which other providers ask of a schema too. */
function choiceOf(
  given: unknown,
  allowed: readonly unknown[] | null,
  lenience: Lenience | undefined,
): NeutralRequest['toolChoice'] {
  const at = 'toolConfig.functionCallingConfig.mode'
  const mode = statedString(given, at)?.value ?? 'MODE_UNSPECIFIED'
  if (mode === 'MODE_UNSPECIFIED') return null
  if (mode === 'AUTO') return { value: 'auto', at }
  if (mode === 'NONE') return { value: 'none', at }
  if (mode === 'VALIDATED') {
    leaveOut(lenience, at, 'other providers keep to a schema by rules of their own')
    return { value: 'auto', at }
  }
  if (mode !== 'ANY') throw malformed(at, 'AUTO, ANY, NONE or VALIDATED')
  const [name, ...others] = allowed ?? []
  return { value: typeof name === 'string' && others.length === 0 ? { name } : 'required', at }
}

function outputOf(body: Readonly<JsonObject>): Stated<NeutralOutput> | null {
  const type = statedString(body[`${settingPrefix}responseMimeType`], `${settingPrefix}responseMimeType`)
  const json = statedObject(body[`${settingPrefix}responseJsonSchema`], `${settingPrefix}responseJsonSchema`)
  const declared = statedObject(body[`${settingPrefix}responseSchema`], `${settingPrefix}responseSchema`)
  if (type === null || type.value === 'text/plain') return null
  if (type.value !== 'application/json') throw unsupported(type.at, 'is none of text/plain and application/json')
  if (json === null && declared === null) return { value: { form: 'json' }, at: type.at }
  const schema = json?.value ?? jsonSchemaOf(declared?.value ?? {})
  const { at } = json ?? declared ?? type
  return { value: { form: 'schema', name: null, description: null, schema, strict: null }, at }
}

const thinkingMembers = new Set(['includeThoughts', 'thinkingBudget', 'thinkingLevel'])

/** A budget of -1 leaves the amount to the model, and one of 0 is no thinking. */
function reasoningOf(body: Readonly<JsonObject>): Stated<NeutralReasoning> | null {
  const at = `${settingPrefix}thinkingConfig`
  const config = statedObject(body[at], at)?.value
  if (config === undefined) return null
  onlyMembers(config, at, thinkingMembers)
  const visible = statedBoolean(config.includeThoughts, `${at}.includeThoughts`)?.value ?? false
  const budget = statedNumber(config.thinkingBudget, `${at}.thinkingBudget`)?.value ?? null
  const level = statedString(config.thinkingLevel, `${at}.thinkingLevel`)?.value.toLowerCase() ?? null
  if (budget === 0) return { value: { effort: 'none', budgetTokens: 0, visible: null }, at }
  const isNamed = level !== null && level !== 'thinking_level_unspecified'
  const effort = isNamed ? efforts.find((known) => known === level) : null
  if (effort === undefined) throw malformed(`${at}.thinkingLevel`, 'MINIMAL, LOW, MEDIUM or HIGH')
  const budgetTokens = budget === null || budget < 0 ? null : budget
  if (effort === null && budgetTokens === null && budget === null && !visible) return null
  return { value: { effort, budgetTokens, visible }, at }
}

function samplingOf(body: Readonly<JsonObject>): NeutralRequest['sampling'] {
  const at = `${settingPrefix}stopSequences`
  const stop = isGiven(body[at]) ? arrayAt(body[at], at) : []
  const value = stop.map((each, index) => stringAt(each, `${at}.${index}`))
  const numbers = readNumbers(body)
  return value.length === 0 ? numbers : { ...numbers, stop: { value, at } }
}
