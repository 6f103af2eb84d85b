/**
 * A form made from a JSON Schema: the fields of an object, each by its type. What is left empty is absent from the
 * value, so that the API's defaults hold. What has no field of its own kind is written as JSON.
 *
 * Which field is at fault is the API's word: its `param` is the same path as here. The form itself checks nothing but
 * that JSON can be read.
 */
import { useState } from 'preact/hooks'
import { type JsonSchema, type RecordList, recordsNamedBy } from '../../api/description.ts'
import type { Refusal } from '../../api/request.ts'
import { humanize } from '../../formats.ts'
import { isObject } from '../../json-object.ts'
import { explained } from '../small.tsx'
import { type Finder, ManyOf, OneOf, type Options } from './choice.tsx'
import { CheckField, Legend, SelectField, TextArea, TextField } from './field.tsx'
import { fieldLabel } from './field-label.ts'
import { JsonField, LinesField, NumbersField, PairsField } from './typed-values.tsx'

export type JsonObject = { [name: string]: unknown }
/**
 * By the lists of records that members name, or by the names of members. Null where the options are on their way: only
 * these fields wait for them.
 */
export type Choices = Readonly<Record<string, Options | Finder | null>>

export const choicesKey = ({ path, by }: RecordList): string => `${by} of ${path}`

interface Shared {
  choices?: Choices | undefined
  /** Texts that hold several of their choices, separated by blanks. */
  several?: readonly string[] | undefined
  refusal?: Refusal | null | undefined
}

interface ObjectProps extends Shared {
  schema: JsonSchema
  value: JsonObject
  set(value: JsonObject): void
  /** Where it stands in the body: `config`. */
  path?: string
  /** Members with a place of their own elsewhere. */
  without?: readonly string[]
}

/** The fields of an object: its name, then what else is required, then the rest. */
export function SchemaFields({ schema, value, set, path = '', without = [], ...shared }: ObjectProps) {
  const required = new Set(schema.required)
  const rank = (name: string) => (/^(client_)?name$/.test(name) ? 0 : required.has(name) ? 1 : 2)
  const members = Object.entries(schema.properties ?? {})
    .filter(([name, part]) => part.const === undefined && !without.includes(name) && counts(part, value))
    .toSorted(([left], [right]) => rank(left) - rank(right))
  return (
    <>
      {members.map(([name, part]) => (
        <SchemaField
          key={name}
          name={name}
          path={path === '' ? name : `${path}.${name}`}
          schema={part}
          required={required.has(name)}
          beside={value}
          set={(next) => set(withMember(withoutDependents(schema, name, value), name, next))}
          {...shared}
        />
      ))}
    </>
  )
}

function withMember(value: JsonObject, name: string, next: unknown): JsonObject {
  const { [name]: _before, ...rest } = value
  return next === undefined ? rest : { ...rest, [name]: next }
}

const counts = ({ 'x-only-where': where }: JsonSchema, beside: JsonObject): boolean =>
  where === undefined || beside[where.member] === where.value

/** What was given for one kind does not hold where another kind is chosen beside it. */
const withoutDependents = (schema: JsonSchema, member: string, value: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(value).filter(([name]) => {
      const part = schema.properties?.[name]
      return part?.['x-record-of']?.member !== member && part?.['x-only-where']?.member !== member
    }),
  )

interface FieldProps extends Shared {
  name: string
  path: string
  schema: JsonSchema
  required: boolean
  /** The object that it is a member of. */
  beside: JsonObject
  set(value: unknown): void
}

/** `X or null` is an X that may be left out. */
function withoutNull(schema: JsonSchema): JsonSchema {
  const kinds = (schema.anyOf ?? []).filter(({ type }) => type !== 'null')
  const [only] = kinds
  if (schema.anyOf === undefined || kinds.length !== 1 || only === undefined) return schema
  const { anyOf: _kinds, ...rest } = schema
  return { ...only, ...rest }
}

const textOf = (value: unknown): string => (value === undefined || value === null ? '' : String(value))

const faultAt = (refusal: Refusal | null | undefined, path: string): string | null =>
  refusal?.param != null && (refusal.param === path || refusal.param.startsWith(`${path}.`)) ? refusal.message : null

function SchemaField({ beside, ...given }: FieldProps) {
  const { name, path, set, choices, refusal } = given
  const records = recordsNamedBy(given.schema, beside)
  if (records === null) return null
  const schema = withoutNull(given.schema)
  const byKind = schema['x-record-of']?.member
  // Where another member says which records are meant, one of them is needed.
  const required = given.required || byKind !== undefined
  const value = beside[name]
  const props = { ...given, required, value, options: choices?.[records === undefined ? name : choicesKey(records)] }
  const label =
    byKind === undefined
      ? labelOf(name, records !== undefined && props.options !== undefined)
      : humanize(String(beside[byKind]))
  const hint = byKind === undefined ? hintOf(schema) : undefined
  const common = { label, hint, fault: faultAt(refusal, path) }
  const { options } = props
  if (options !== undefined && props.several?.includes(name)) {
    const words = textOf(value).split(' ').filter(Boolean)
    return (
      <ManyOf
        {...common}
        required={required}
        options={options}
        chosen={words}
        set={(next) => set(next.join(' ') || undefined)}
      />
    )
  }
  if (options !== undefined && schema.type === 'string') {
    return (
      <OneOf
        {...common}
        {...{ options, required }}
        value={textOf(value)}
        set={(text) => set(text === '' ? undefined : text)}
      />
    )
  }
  if (schema.type === 'array') return <ArrayField {...props} schema={schema} common={common} />
  if (schema.type === 'object') return <ObjectField {...props} schema={schema} common={common} />
  if (schema.enum !== undefined) {
    const first = required
      ? 'Choose…'
      : `Default${schema.default === undefined ? '' : `: ${humanize(String(schema.default))}`}`
    return (
      <SelectField
        {...common}
        value={textOf(value)}
        set={(text) => set(text === '' ? undefined : text)}
        options={[['', first], ...schema.enum.map((one) => [String(one), humanize(String(one))] as const)]}
        required={required}
      />
    )
  }
  if (schema.type === 'boolean') {
    return <CheckField {...common} value={value === undefined ? schema.default === true : value === true} set={set} />
  }
  if (schema.type === 'number' || schema.type === 'integer') {
    return <NumberField {...props} schema={schema} common={common} />
  }
  if (schema.type === 'string') return <StringField {...props} schema={schema} common={common} />
  return <JsonField {...props} common={common} />
}

/** Of a record that is chosen by its name, the label says nothing of ids: `provider_id` is `Provider`. */
const labelOf = (name: string, isChosen: boolean): string =>
  fieldLabel(isChosen ? name.replace(/_id(s?)$/, '$1') : name)

function hintOf({ description, default: given, type }: JsonSchema): string | undefined {
  const plain = given !== undefined && given !== null && typeof given !== 'object' && type !== 'boolean'
  return plain ? [description, `Default: ${String(given)}`].filter(Boolean).join('. ') : description
}

interface WithCommon extends Omit<FieldProps, 'beside'> {
  value: unknown
  /** What can be chosen for it. */
  options: Options | Finder | null | undefined
  common: { label: string; hint: string | undefined; fault: string | null }
}

function NumberField({ schema, value, set, common, required }: WithCommon) {
  const [text, setText] = useState(textOf(value))
  // What is typed stands as it is while it means the value: `0.0`, on the way to `0.05`, would be made `0`.
  const typed = text !== '' && Number(text) === value
  const take = (next: string) => {
    setText(next)
    set(next === '' ? undefined : Number(next))
  }
  return (
    <TextField
      {...common}
      type="number"
      step={schema.type === 'integer' ? 1 : 'any'}
      value={typed ? text : textOf(value)}
      set={take}
      required={required}
    />
  )
}

function StringField({ name, schema, required, value, set, common }: WithCommon) {
  const long = (schema.maxLength ?? 0) > 1000 && schema.format === undefined && !/url|key/.test(name)
  const take = (text: string) => set(text === '' ? undefined : text)
  if (long) return <TextArea {...common} value={textOf(value)} set={take} required={required} />
  const type = schema.format === 'password' || schema.format === 'email' ? schema.format : 'text'
  const autocomplete = type === 'password' ? 'new-password' : 'off'
  return (
    <TextField
      {...common}
      type={type}
      autocomplete={autocomplete}
      value={textOf(value)}
      set={take}
      required={required}
      mono={schema.format === 'uuid'}
    />
  )
}

function ArrayField(props: WithCommon) {
  const { schema, value, set, common } = props
  const items = schema.items ?? {}
  const list = Array.isArray(value) ? value : []
  const { options = items.enum?.map((one) => [String(one), humanize(String(one))] as const) } = props
  if (options !== undefined && items.type === 'string') {
    return (
      <ManyOf
        {...common}
        required={props.required}
        options={options}
        chosen={list.map(String)}
        set={(next) => set(next.length === 0 ? undefined : next)}
      />
    )
  }
  if (items.type === 'string') return <LinesField {...props} />
  if (items.type === 'number' || items.type === 'integer') return <NumbersField {...props} />
  if (items.type === 'object' && items.properties !== undefined) return <ListField {...props} />
  return <JsonField {...props} />
}

/** Objects one below the other, such as patterns with their names. */
function ListField({ path, schema, value, set, common, required, ...shared }: WithCommon) {
  const list: JsonObject[] = Array.isArray(value) ? value.filter(isObject) : []
  const take = (next: JsonObject[]) => set(next.length === 0 ? undefined : next)
  return (
    <fieldset class="group">
      <Legend required={required}>{common.label}</Legend>
      {common.hint !== undefined && <div class="small quiet">{explained(common.hint)}</div>}
      {list.map((item, index) => (
        <div class="group" key={index}>
          <SchemaFields
            schema={schema.items ?? {}}
            path={`${path}.${index}`}
            value={item}
            set={(next) => take(list.map((one, at) => (at === index ? next : one)))}
            choices={shared.choices}
            several={shared.several}
            refusal={shared.refusal}
          />
          <div class="row">
            <button type="button" onClick={() => take(list.filter((_one, at) => at !== index))}>
              Remove
            </button>
          </div>
        </div>
      ))}
      <div class="row">
        <button type="button" onClick={() => take([...list, {}])}>
          Add
        </button>
      </div>
    </fieldset>
  )
}

function ObjectField(props: WithCommon) {
  const { schema, value, set, path, required, common, choices, several, refusal } = props
  if (schema.properties === undefined) {
    const texts = typeof schema.additionalProperties === 'object' && schema.additionalProperties.type === 'string'
    return texts ? <PairsField {...props} /> : <JsonField {...props} />
  }
  const present = required || schema.default !== undefined || isObject(value)
  return (
    <fieldset class="group">
      <Legend required={required}>{common.label}</Legend>
      {common.hint !== undefined && <div class="small quiet">{explained(common.hint)}</div>}
      {!required && schema.default === undefined && (
        <CheckField label="Set it" value={present} set={(on) => set(on ? {} : undefined)} />
      )}
      {present && (
        <SchemaFields
          schema={schema}
          path={path}
          value={isObject(value) ? value : {}}
          set={set}
          choices={choices}
          several={several}
          refusal={refusal}
        />
      )}
    </fieldset>
  )
}
