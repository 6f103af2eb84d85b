/** Fields of forms: a label, what it means, what is wrong with it. */
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { explained } from '../small.tsx'

export interface Common {
  label: string
  hint?: ComponentChildren
  fault?: string | null | undefined
}

export const describedBy = (id: string, { hint, fault }: Common): string | undefined =>
  [hint !== undefined && `${id}-hint`, fault != null && `${id}-fault`].filter(Boolean).join(' ') || undefined

export const Around = ({ id, label, hint, fault, children }: Common & { id: string; children: ComponentChildren }) => (
  <div class="field">
    <label for={id}>{label}</label>
    {children}
    {hint !== undefined && (
      <div class="hint" id={`${id}-hint`}>
        {explained(hint)}
      </div>
    )}
    {fault != null && (
      <div class="fault" id={`${id}-fault`}>
        {fault}
      </div>
    )}
  </div>
)

/** The title of a group of fields. A group has no state `required`, so its title says it. */
export const Legend = ({ required = false, children }: { required?: boolean; children: ComponentChildren }) => (
  <legend class={required ? 'required' : ''}>
    {children}
    {required && <span class="hidden"> (required)</span>}
  </legend>
)

/** What the mark beside the labels of a form means; without it, a form has no marks. */
export const RequiredNote = () => <p class="small quiet required-note">Fields marked with * are required.</p>

/** For the first field of a page that is nothing but its form. */
const focused = (element: HTMLElement | null): void => element?.focus()

interface TextProps extends Common {
  value: string
  set(value: string): void
  type?: 'text' | 'email' | 'password' | 'number' | 'datetime-local' | 'url'
  required?: boolean
  autocomplete?: string
  placeholder?: string
  mono?: boolean
  minLength?: number
  min?: number
  step?: number | 'any'
  focus?: boolean
  /** What the browser offers while one types; anything else may be typed too. */
  suggestions?: readonly string[]
}

export function TextField(props: TextProps) {
  const {
    value,
    set,
    type = 'text',
    mono = false,
    focus = false,
    required,
    autocomplete,
    placeholder,
    minLength,
    min,
    step,
    suggestions,
  } = props
  const id = useId()
  return (
    <Around id={id} {...props}>
      <input
        id={id}
        // Preact's types tell each kind of input apart; all of these have the same attributes.
        type={type as 'text'}
        value={value}
        class={mono ? 'mono' : ''}
        required={required}
        ref={focus ? focused : null}
        placeholder={placeholder}
        minLength={minLength}
        min={min}
        step={step}
        autocomplete={autocomplete ?? 'off'}
        list={suggestions === undefined ? undefined : `${id}-list`}
        spellcheck={false}
        aria-invalid={props.fault != null}
        aria-describedby={describedBy(id, props)}
        onInput={(event) => set(event.currentTarget.value)}
      />
      {suggestions !== undefined && <Suggestions id={`${id}-list`} of={suggestions} />}
    </Around>
  )
}

export const Suggestions = ({ id, of }: { id: string; of: readonly string[] }) => (
  <datalist id={id}>
    {of.map((one) => (
      <option value={one} key={one} />
    ))}
  </datalist>
)

interface AreaProps extends Common {
  value: string
  set(value: string): void
  rows?: number
  mono?: boolean
  required?: boolean
  placeholder?: string
}

export function TextArea(props: AreaProps) {
  const { value, set, rows = 3, mono = false, required, placeholder } = props
  const id = useId()
  return (
    <Around id={id} {...props}>
      <textarea
        id={id}
        rows={rows}
        class={mono ? 'mono' : ''}
        value={value}
        required={required}
        placeholder={placeholder}
        spellcheck={!mono}
        aria-invalid={props.fault != null}
        aria-describedby={describedBy(id, props)}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </Around>
  )
}

interface SelectProps extends Common {
  value: string
  set(value: string): void
  /** Null while they are on their way: then it says so, and nothing can be chosen yet. */
  options: readonly (readonly [value: string, label: string])[] | null
  required?: boolean
}

export const onItsWay = 'Loading…'

export function SelectField(props: SelectProps) {
  const { value, set, options, required } = props
  const id = useId()
  return (
    <Around id={id} {...props}>
      <select
        id={id}
        value={value}
        required={required}
        disabled={options === null}
        aria-invalid={props.fault != null}
        aria-describedby={describedBy(id, props)}
        onChange={(event) => set(event.currentTarget.value)}
      >
        {(options ?? [[value, onItsWay] as const]).map(([key, text]) => (
          <option value={key} key={key}>
            {text}
          </option>
        ))}
      </select>
    </Around>
  )
}

interface CheckProps {
  label: ComponentChildren
  hint?: ComponentChildren
  value: boolean
  set(value: boolean): void
}

export const CheckField = ({ label, hint, value, set }: CheckProps) => (
  <label class="choice">
    <input type="checkbox" checked={value} onChange={(event) => set(event.currentTarget.checked)} />
    <span>
      {label}
      {hint !== undefined && <span class="hint">{explained(hint)}</span>}
    </span>
  </label>
)

interface RadioProps<Value extends string> {
  label: string
  hint?: ComponentChildren
  /** Empty: none is chosen yet. */
  value: Value | ''
  set(value: Value): void
  options: readonly { value: Value; label: string; hint?: string }[]
}

/** A choice whose consequences are explained beside each possibility. */
export function RadioField<Value extends string>({ label, hint, value, set, options }: RadioProps<Value>) {
  const name = useId()
  return (
    <fieldset class="field">
      <legend>{label}</legend>
      {hint !== undefined && <div class="hint">{explained(hint)}</div>}
      {options.map((option) => (
        <label class="choice" key={option.value}>
          <input type="radio" name={name} checked={option.value === value} onChange={() => set(option.value)} />
          <span>
            {option.label}
            {option.hint !== undefined && <span class="hint">{option.hint}</span>}
          </span>
        </label>
      ))}
    </fieldset>
  )
}
