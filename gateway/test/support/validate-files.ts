import { validateConfigFile } from '../../src/app/validate-file.ts'
import { reasonsOf } from '../../src/config/config-rejected.ts'

// `node validate-files.ts JSON`: validates many configuration files in one process, each with its own
// environment, as `tollgate --validate-only` validates one. Input: a list of [file, environment]. Output: the
// printed lines of each.

const files: [string, Record<string, string>][] = JSON.parse(process.argv[2] ?? '[]')
const printed: Record<string, string[]> = {}

for (const [file, env] of files) {
  const lines: string[] = []
  try {
    await validateConfigFile(file, env, (line) => lines.push(line))
  } catch (error) {
    lines.push(...reasonsOf(error))
  }
  printed[file] = lines
}

process.stdout.write(JSON.stringify(printed))
