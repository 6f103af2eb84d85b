/**
 * The channels of one stream by their names, and the open ones in each group that ends at once: a choice, a call, a
 * block. Ending a group costs only its open channels, however many channels the stream has had.
 */
interface Known<Channel, Group> {
  readonly name: string
  readonly channel: Channel
  readonly groups: readonly Group[]
  /** How many channels were known before it: channels that end together do so in the order in which they came. */
  readonly order: number
}

export class OpenChannels<Channel extends { ended: boolean }, Group> {
  readonly #known = new Map<string, Known<Channel, Group>>()
  readonly #open = new Set<Known<Channel, Group>>()
  readonly #byGroup = new Map<Group, Set<Known<Channel, Group>>>()

  get(name: string): Channel | undefined {
    return this.#known.get(name)?.channel
  }

  /** Adds and opens an unknown channel. */
  add(name: string, channel: Channel, groups: readonly Group[]): void {
    const known = { name, channel, groups, order: this.#known.size }
    this.#known.set(name, known)
    this.#begin(known)
  }

  /** Reopens a known channel. */
  reopen(name: string): void {
    const known = this.#known.get(name)
    if (known?.channel.ended) this.#begin(known)
  }

  /**
   * Ends the open channels of some groups, if `isAsked` accepts their name; returns the names in the order in which
   * they came.
   */
  end(groups: Iterable<Group>, isAsked: (name: string) => boolean = () => true): string[] {
    const ending: Known<Channel, Group>[] = []
    for (const group of groups) {
      for (const known of this.#byGroup.get(group) ?? []) {
        if (!isAsked(known.name)) continue
        this.#end(known)
        ending.push(known)
      }
    }
    return namesOf(ending)
  }

  endAll(): string[] {
    const ending = [...this.#open]
    for (const known of ending) known.channel.ended = true
    this.#open.clear()
    this.#byGroup.clear()
    return namesOf(ending)
  }

  #begin(known: Known<Channel, Group>): void {
    known.channel.ended = false
    this.#open.add(known)
    for (const group of known.groups) {
      const others = this.#byGroup.get(group)
      if (others === undefined) this.#byGroup.set(group, new Set([known]))
      else others.add(known)
    }
  }

  #end(known: Known<Channel, Group>): void {
    known.channel.ended = true
    this.#open.delete(known)
    for (const group of known.groups) {
      const others = this.#byGroup.get(group)
      others?.delete(known)
      if (others?.size === 0) this.#byGroup.delete(group)
    }
  }
}

const namesOf = (ended: Known<unknown, unknown>[]): string[] =>
  ended.sort((one, other) => one.order - other.order).map(({ name }) => name)
