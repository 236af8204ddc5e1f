import type { Breathe } from '../../lib/scheduling/yielding.ts'
import type { Config } from '../schema.ts'
import { ConfigRejected } from './live.ts'
import { shareStructureInSteps } from './structural-share.ts'

export type FileSourceOptions = {
  /** What the file said at the start. Its `config.*` holds until the process ends. */
  first: Config
  /** Reads a text as the file's. Throws `ConfigRejected`. */
  read(text: string): Promise<Config>
  breathe: Breathe
}

/** The configuration of the file: what it says now, with `config.*` as it was at the start. */
export type FileSource = {
  readonly current: Config
  /** What a text says as the file's; `current` itself where it says the same. Parts that are as before are the same objects. */
  load(text: string): Promise<Config>
  /** Makes what was loaded last the current one. True where it holds changes that take effect after a restart. */
  accept(config: Config): boolean
}

export function createFileSource({ first, read, breathe }: FileSourceOptions): FileSource {
  const started = first.config
  let current = { said: first, config: first }
  let loaded = current

  /** Prices change while the gateway runs; everything else of `config` is read once. */
  function withStarted(said: Config): Config {
    const { modelCatalog, ...rest } = { ...started }
    const catalog = said.config?.modelCatalog
    if (catalog === modelCatalog) return { ...said, config: started }
    return { ...said, config: catalog === undefined ? rest : { ...rest, modelCatalog: catalog } }
  }

  return {
    get current() {
      return current.config
    },
    async load(text) {
      const said = await shareStructureInSteps(current.said, await read(text), breathe)
      loaded = said === current.said ? current : { said, config: withStarted(said) }
      return loaded.config
    },
    accept(config) {
      if (loaded.config !== config) throw new ConfigRejected(['another configuration was loaded meanwhile'])
      const before = current
      current = loaded
      return changesProcess(before.said, current.said)
    },
  }
}

function changesProcess({ config: before = {} }: Config, { config: now = {} }: Config): boolean {
  const were = new Map<string, unknown>(Object.entries(before))
  const are = new Map<string, unknown>(Object.entries(now))
  were.delete('modelCatalog')
  are.delete('modelCatalog')
  return were.size !== are.size || [...are].some(([key, value]) => were.get(key) !== value)
}
