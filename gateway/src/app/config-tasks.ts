import { ConfigRejected, type LocatedMistake } from '../config/config-rejected.ts'
import { addCustomFunctions } from '../config/load/custom-functions.ts'
import type { Environment } from '../config/load/environment.ts'
import { formatChecks } from '../config/load/formats.ts'
import { formatIssue, loadConfigText } from '../config/load/load.ts'
import { checkNamedFiles } from '../config/load/named-files.ts'
import { type Config, checkConfig, configSchema } from '../config/schema.ts'
import { applyExporterEnvironment } from '../config/telemetry/exporter-environment.ts'
import { type FileIndex, indexFile } from '../resources/records/file-index.ts'

type LoadRequest = { text: string; file: string; env: Environment }

/** Issues are lines of text. */
type LoadOutcome =
  | { kind: 'config'; config: Config; index: FileIndex | undefined }
  | { kind: 'issues'; issues: string[]; mistakes: LocatedMistake[] }

/** Parses and validates the text of a configuration file, including the files that it names. */
export function loadConfig({ text, file, env }: LoadRequest): LoadOutcome {
  const ofVariables: string[] = []
  const result = loadConfigText({
    text,
    file,
    env,
    schema: configSchema,
    checks: [checkConfig, checkNamedFiles],
    formats: formatChecks,
    prepare(schema, value) {
      ofVariables.length = 0
      applyExporterEnvironment(value, env, (message) => ofVariables.push(message))
      addCustomFunctions(schema, value)
    },
  })
  if (ofVariables.length > 0) return issuesOfVariables(file, ofVariables)
  if (result.kind === 'issues') {
    const mistakes = result.issues.map(({ message, line, column, path }) => ({ message, line, column, path }))
    return { kind: 'issues', issues: result.issues.map(formatIssue), mistakes }
  }
  const index = isIndexed(text) ? indexFile(result.document(), result.config) : undefined
  return { kind: 'config', config: result.config, index }
}

/** Mistakes in variables, which have no position in the file. */
function issuesOfVariables(file: string, messages: readonly string[]): LoadOutcome {
  const mistakes = messages.map((message) => ({ message, line: 1, column: 1, path: 'config.tracing' }))
  return { kind: 'issues', issues: mistakes.map((mistake) => formatIssue({ file, ...mistake })), mistakes }
}

/** A large text in JSON has no references, and lines of no use; it would be parsed once more. */
function isIndexed(text: string): boolean {
  return isSmallText(text) || !/^\s*\{/.test(text)
}

/** The configuration of an outcome. Throws `ConfigRejected` if there are issues. */
export function acceptedConfig(outcome: LoadOutcome): Config {
  if (outcome.kind === 'issues') throw new ConfigRejected(outcome.issues, outcome.mistakes)
  return outcome.config
}

/** Length in characters. Loading such a text takes some 10 ms, less than the start of a thread. */
const maxSmallText = 32 * 1024

/** Whether a task on this text runs on the main thread. */
export function isSmallText(text: string): boolean {
  return text.length <= maxSmallText
}
