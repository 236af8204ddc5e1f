/** State of a proxy, as it is connected to this process. */
export type ConnectedProxy = {
  /** Name of its Pod. */
  readonly name: string
  /** Milliseconds since the Unix epoch. */
  readonly connectedAt: number
  /** Version that it serves; undefined before its first acknowledgement. */
  readonly serving: string | undefined
  /** Configuration that it does not accept; undefined if it serves the last one that it received. */
  readonly refused: RefusedVersion | undefined
}

export type RefusedVersion = {
  readonly version: string
  /** Reasons, one line each. */
  readonly errors: readonly string[]
}

/** Report of a proxy: the version that it serves, and one that it refuses. */
export type Acknowledgement = Pick<ConnectedProxy, 'serving' | 'refused'>

/** One stream to a proxy. */
export type ProxyStream = {
  /** Sends a newer configuration if there is one. */
  wake(): void
  close(reason: string): void
}

export type ProxyRegistration = {
  /** Identifies the process. A second stream with it replaces the first. */
  readonly id: string
  readonly name: string
  readonly connectedAt: number
  readonly stream: ProxyStream
}

/** The streams of one Gateway. */
export type ProxyConnections = {
  /** Adds a stream; undefined if there are too many. Returns a function that removes it. */
  add(registration: ProxyRegistration): (() => void) | undefined
  /** Records a report; `unknown` if the process has no stream here. */
  acknowledge(id: string, report: Acknowledgement, now: number): 'changed' | 'unchanged' | 'unknown'
  /** Closes streams of processes without a report since a time, in milliseconds since the Unix epoch. */
  closeSilent(since: number): void
  list(): readonly ConnectedProxy[]
  wake(): void
  close(reason: string): void
}

/** Streams of one Gateway. */
const maxProxies = 1_000

export function createProxyConnections(onChange: () => void): ProxyConnections {
  type Entry = ProxyRegistration & { report: Acknowledgement; reportedAt: number }
  const entries = new Map<string, Entry>()

  return {
    add(registration) {
      const { id, connectedAt } = registration
      const previous = entries.get(id)
      if (previous === undefined && entries.size >= maxProxies) return undefined
      const report = previous?.report ?? { serving: undefined, refused: undefined }
      const entry: Entry = { ...registration, report, reportedAt: connectedAt }
      entries.set(id, entry)
      previous?.stream.close('replaced by another stream of the same proxy')
      onChange()
      return () => {
        if (entries.get(id) !== entry) return
        entries.delete(id)
        onChange()
      }
    },
    acknowledge(id, report, now) {
      const entry = entries.get(id)
      if (entry === undefined) return 'unknown'
      const isNew = !isEqual(entry.report, report)
      entry.reportedAt = now
      entry.report = report
      if (!isNew) return 'unchanged'
      onChange()
      return 'changed'
    },
    closeSilent(since) {
      for (const { reportedAt, stream } of entries.values()) {
        if (reportedAt < since) stream.close('no acknowledgement in time')
      }
    },
    list: () =>
      [...entries.values()]
        .map(({ name, connectedAt, report }) => ({ name, connectedAt, ...report }))
        .sort((one, other) => (one.name < other.name ? -1 : Number(one.name > other.name))),
    wake() {
      for (const { stream } of entries.values()) stream.wake()
    },
    close(reason) {
      for (const { stream } of [...entries.values()]) stream.close(reason)
    },
  }
}

function isEqual(one: Acknowledgement, other: Acknowledgement): boolean {
  return (
    one.serving === other.serving &&
    one.refused?.version === other.refused?.version &&
    JSON.stringify(one.refused?.errors) === JSON.stringify(other.refused?.errors)
  )
}
