/** A failure that is present, such as an unreachable identity provider. */
export type Condition = {
  readonly kind: ConditionKind
  /** The part that fails: a URL, a destination. */
  readonly subject: string
  readonly message: string
  /** Milliseconds since the epoch of the first failure. */
  readonly since: number
}

export type ConditionKind = 'identity' | 'destination' | 'mcpTarget'

/** Failure to report. `isPresent` is evaluated when conditions are read, also after recovery elsewhere. */
export type ReportedFailure = Omit<Condition, 'since'> & { isPresent(): boolean }

/** Present failures of a data plane. */
export type Conditions = {
  report(failure: ReportedFailure): void
  /** Those of now. */
  current(): Condition[]
}

/** Further failures are not reported. */
const maxConditions = 1_000
const maxMessageLength = 500

export function createConditions(now: () => number): Conditions {
  const conditions = new Map<string, Condition & Pick<ReportedFailure, 'isPresent'>>()
  const keyOf = (kind: ConditionKind, subject: string) => `${kind} ${subject}`

  return {
    report({ kind, subject, message, isPresent }) {
      const key = keyOf(kind, subject)
      const since = conditions.get(key)?.since ?? now()
      if (!conditions.has(key) && conditions.size >= maxConditions) return
      conditions.set(key, { kind, subject, message: message.slice(0, maxMessageLength), since, isPresent })
    },
    current() {
      for (const [key, { isPresent }] of conditions) if (!isPresent()) conditions.delete(key)
      return [...conditions.values()].map(({ isPresent: _, ...condition }) => condition)
    },
  }
}
