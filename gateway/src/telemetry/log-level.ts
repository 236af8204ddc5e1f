import type { LogLevel } from './log.ts'

/** Names of levels, with those of agentgateway. */
const levels: Readonly<Record<string, LogLevel>> = {
  trace: 'debug',
  debug: 'debug',
  info: 'info',
  warn: 'warn',
  error: 'error',
}

/** `config.logging.level`: a level, or levels with modules (`info,agent_core=trace`), as text or list. */
export type LogLevelConfig = string | readonly string[]

/**
 * The level of the process: the one without a module, `info` by default. Modules are those of agentgateway,
 * so their levels have no effect.
 */
export function logLevelOf(config: LogLevelConfig | undefined): LogLevel {
  const own = entriesOf(config).find((entry) => !entry.includes('='))
  return levels[own ?? 'info'] ?? 'info'
}

/** The mistake in a configured level; undefined for a valid one. */
export function logLevelMistake(config: LogLevelConfig): string | undefined {
  const entries = entriesOf(config)
  const wrong = entries.find((entry) => !Object.hasOwn(levels, entry.slice(entry.indexOf('=') + 1)))
  if (wrong !== undefined)
    return `expected one of ${Object.keys(levels).join(', ')}, or module=level, got "${wrong}"`
  if (entries.filter((entry) => !entry.includes('=')).length > 1)
    return 'must have one level without a module'
  return undefined
}

function entriesOf(config: LogLevelConfig | undefined): string[] {
  return [config ?? []].flat().flatMap((entry) => entry.split(',').map((part) => part.trim().toLowerCase()))
}
