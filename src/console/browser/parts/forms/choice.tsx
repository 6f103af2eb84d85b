/**
 * Choices among records, by their names: one, or several. A short list is shown whole. In a longer one, and in one that
 * is too long to be read at once, part of a name finds what is meant.
 */
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { Refusal } from '../../api/request.ts'
import { useLoaded } from '../loaded.tsx'
import { explained } from '../small.tsx'
import { Around, CheckField, type Common, describedBy, Legend, onItsWay, SelectField } from './field.tsx'

export type Options = readonly (readonly [value: string, label: string, hint?: string])[]

/** Records that are too many to be read at once. */
export interface Finder {
  /** Those whose names have the text, so many at most as one page has. */
  search(text: string, signal: AbortSignal): Promise<Options>
  /** Those that are chosen already, by their values. */
  named(values: readonly string[], signal: AbortSignal): Promise<Options>
}

interface ChoiceProps extends Common {
  /** Null while they are on their way. */
  options: Options | Finder | null
}

/** A longer list has a field that finds what is not shown. */
const mostShown = 20

interface Found {
  /** What can be chosen now, with what is chosen; null while it is on its way. */
  options: Options | null
  /** Whether the search is on its way. */
  loading: boolean
  refusal: Refusal | null
}

/** The options whose names have the text, and those that are chosen. While it is to `wait`, it searches nothing. */
export function useOptions(
  options: Options | Finder | null,
  sought: string,
  chosen: readonly string[],
  { wait = false }: { wait?: boolean } = {},
): Found {
  const [finder, listed] = options === null ? [null, null] : 'search' in options ? [options, null] : [null, options]
  const found = useLoaded(
    `find ${finder === null ? '' : sought}`,
    async (signal) => (finder === null ? [] : await finder.search(sought, signal)),
    { wait },
  )
  const kept = useRef<Options>([])
  const known = [...kept.current, ...(found.value ?? [])]
  const unknown = finder === null ? [] : chosen.filter((one) => !known.some(([value]) => value === one))
  const named = useLoaded(`named ${unknown.join()}`, async (signal) =>
    finder === null || unknown.length === 0 ? [] : await finder.named(unknown, signal),
  )
  const { loading } = found
  const refusal = found.refusal ?? named.refusal
  if (finder === null) return { options: listed, loading, refusal }
  kept.current = [...known, ...(named.value ?? [])].filter(
    ([value], index, all) => chosen.includes(value) && all.findIndex(([other]) => other === value) === index,
  )
  const others = (found.value ?? []).filter(([value]) => !chosen.includes(value))
  return { options: [...kept.current, ...others], loading, refusal }
}

interface OneProps extends ChoiceProps {
  value: string
  set(value: string): void
  required?: boolean
  /** What stands for no choice. */
  none?: string | undefined
}

/** One of several. The value is empty while what is typed names none. */
export function OneOf({ options, none, ...field }: OneProps) {
  if (options === null || (!('search' in options) && options.length <= mostShown)) {
    const first = none ?? (field.required === true ? 'Choose…' : 'None')
    const named = options?.map(([value, label]) => [value, label] as const)
    return <SelectField {...field} options={named === undefined ? null : [['', first], ...named]} />
  }
  return <FoundOne options={options} none={none} {...field} />
}

function FoundOne(props: OneProps & { options: Options | Finder }) {
  const { value, set, required, none, options } = props
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  /** What is typed, while it names none of them. */
  const [typed, setTyped] = useState<string | null>(null)
  const { options: shown } = useOptions(options, typed ?? '', value === '' ? [] : [value])
  const label = shown?.find(([one]) => one === value)?.[1] ?? value
  const text = typed ?? label
  useEffect(() => {
    input.current?.setCustomValidity(value === '' && text !== '' ? 'Choose one of the names in the list' : '')
  }, [value, text])
  const take = (next: string) => {
    const meant = shown?.find(([, name]) => name === next)
    setTyped(meant === undefined && next !== '' ? next : null)
    set(meant?.[0] ?? '')
  }
  useEffect(() => {
    // A whole name may be typed before the search that offers it has answered.
    if (typed !== null && shown?.some(([, name]) => name === typed)) take(typed)
  }, [shown?.map(([one]) => one).join()])
  return (
    <Around id={id} {...props}>
      <input
        id={id}
        ref={input}
        type="search"
        list={`${id}-list`}
        value={text}
        required={required}
        placeholder={none === undefined ? 'Type part of a name' : `${none}. Type part of a name`}
        autocomplete="off"
        spellcheck={false}
        aria-invalid={props.fault != null}
        aria-describedby={describedBy(id, props)}
        onInput={(event) => take(event.currentTarget.value)}
      />
      <datalist id={`${id}-list`}>
        {shown?.map(([one, name]) => (
          <option value={name} key={one} />
        ))}
      </datalist>
    </Around>
  )
}

interface ManyProps extends ChoiceProps {
  chosen: readonly string[]
  required?: boolean
  set(chosen: string[]): void
}

/** Some of several. Of a long list, it shows what is chosen and the first whose names have the text that is sought. */
export function ManyOf({ label, hint, fault, options: given, chosen, set, required }: ManyProps) {
  const [sought, setSought] = useState('')
  const { options } = useOptions(given, sought, chosen)
  const finds = given !== null && 'search' in given
  const long = finds || (options?.length ?? 0) > mostShown
  const words = sought.trim().toLowerCase()
  const isChosen = ([value]: readonly [string, string, string?]) => chosen.includes(value)
  const fitting = (options ?? []).filter(
    (option) => isChosen(option) || finds || option[1].toLowerCase().includes(words),
  )
  const shown = fitting.filter((option, index) => index < mostShown || isChosen(option))
  const hidden = fitting.length - shown.length
  return (
    <fieldset class="field">
      <Legend required={required === true}>{label}</Legend>
      {long && (
        <input
          type="search"
          value={sought}
          aria-label={`Find in ${label.toLowerCase()}`}
          placeholder={finds ? 'Type part of a name' : `Find in ${options?.length}`}
          onInput={(event) => setSought(event.currentTarget.value)}
          onKeyDown={(event) => event.key === 'Enter' && event.preventDefault()}
        />
      )}
      <div class="choices">
        {options === null && <span class="quiet">{onItsWay}</span>}
        {options?.length === 0 && !long && <span class="quiet">None available</span>}
        {shown.map(([option, text, explained]) => (
          <CheckField
            key={option}
            label={text}
            hint={explained}
            value={chosen.includes(option)}
            set={(on) => set(on ? [...chosen, option] : chosen.filter((one) => one !== option))}
          />
        ))}
      </div>
      {long && (
        <div class="hint" role="status">
          {fitting.every(isChosen)
            ? 'No other name has this text'
            : hidden > 0 && `And ${hidden} more. Type part of a name.`}
        </div>
      )}
      {hint !== undefined && <div class="hint">{explained(hint)}</div>}
      {fault != null && <div class="fault">{fault}</div>}
    </fieldset>
  )
}
