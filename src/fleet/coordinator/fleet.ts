/** What the rest of the control plane sees of the gateways that are connected to it. */
import type { Head, Propagation } from '../protocol/wire.ts'

export interface Fleet {
  /**
   * Tells every connected lane that state is now at `head`, which tokens to refuse at once, and of which of them also
   * to end what runs. `unhurried`: refusing is all there is to do at once. `changed`: the rows of limits and tokens that
   * the change made or altered, as `<kind>/<id>`, where that is known. Never waits.
   */
  announce(
    head: Head,
    deny: readonly string[],
    cut: readonly string[],
    unhurried?: boolean,
    changed?: readonly string[] | null,
  ): void
  /**
   * Waits until every lane that beat within 3 s has acknowledged `version`, or 2 s, and says who has and who has not
   * (protocols section 4, rule 5).
   */
  propagation(version: number): Promise<Propagation>
}
