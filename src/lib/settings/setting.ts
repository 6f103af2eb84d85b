/**
 * The types of settings: each parses the written text into a value or says what to write instead. Written by hand,
 * although the rest of the product uses zod, because every process reads the whole table of settings at each start,
 * and more than five hundred schema objects for it took a third of the time of `up` and half of that of an operator
 * command.
 */

/** The written text does not have the required form; the message says what to write and never repeats the text. */
export class UnfitValue extends Error {}

/** One setting: how it is parsed, its default, and its meaning. */
export interface Setting<Value, Standard = Value | undefined> {
  form: Form<Value>
  standard: Standard
  description: string
  /** Its value is never shown, and no flag sets it. */
  secret: boolean
}

interface Undescribed<Value, Standard> {
  describe(description: string): Setting<Value, Standard>
  describeSecret(description: string): Setting<Value, Standard>
}

const undescribed = <Value, Standard>(form: Form<Value>, standard: Standard): Undescribed<Value, Standard> => ({
  describe: (description) => ({ form, standard, description, secret: false }),
  describeSecret: (description) => ({ form, standard, description, secret: true }),
})

class Form<Value> {
  /** Throws `UnfitValue`. */
  readonly read: (written: unknown) => Value

  constructor(read: (written: unknown) => Value) {
    this.read = read
  }

  /** What to write instead; null if the value is valid. */
  problem(written: unknown): string | null {
    try {
      this.read(written)
      return null
    } catch (error) {
      if (error instanceof UnfitValue) return error.message
      throw error
    }
  }

  refine(holds: (value: Value) => boolean, message: string): Form<Value> {
    return this.transform((value) => {
      if (!holds(value)) throw new UnfitValue(message)
      return value
    })
  }

  transform<Next>(change: (value: Value) => Next): Form<Next> {
    return new Form((written) => change(this.read(written)))
  }

  default(standard: Value): Undescribed<Value, Value> {
    return undescribed(this, standard)
  }

  optional(): Undescribed<Value, undefined> {
    return undescribed(this, undefined)
  }
}

export const text = new Form((written) => {
  if (typeof written !== 'string') throw new UnfitValue('Write text')
  return written
})

/** A whole number, as a file writes it or as text; JavaScript's conversions of other values are not accepted. */
export const whole = (minimum: number, maximum: number): Form<number> =>
  new Form((written) => {
    const value = typeof written === 'string' && /^\d{1,15}$/.test(written) ? Number(written) : written
    if (typeof value === 'number' && Number.isInteger(value) && value >= minimum && value <= maximum) return value
    throw new UnfitValue(`Write a whole number from ${minimum} to ${maximum}`)
  })

export const oneOf = <const Value extends string>(...values: readonly Value[]): Form<Value> =>
  new Form((written) => {
    const value = values.find((each) => each === written)
    if (value === undefined) throw new UnfitValue(`Write one of ${values.join(', ')}`)
    return value
  })
