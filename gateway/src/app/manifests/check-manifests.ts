import { reasonsOf } from '../../config/config-rejected.ts'
import type { Environment } from '../../config/load/environment.ts'
import { validateConfig } from '../../config/load/validate.ts'
import { checkObjects } from '../../kubernetes/check/check.ts'
import { type CheckReport, isAccepted, reportJson, reportText } from '../../kubernetes/check/report.ts'
import { readManifestFolder } from '../../kubernetes/objects/manifests/folder.ts'
import { createManifestReader } from '../../kubernetes/objects/manifests/manifests.ts'
import { type ManifestProblem, parseManifest } from '../../kubernetes/objects/manifests/parse-manifest.ts'
import { createServiceNames } from '../../kubernetes/objects/manifests/service-names.ts'
import { createTranslator } from '../../kubernetes/translate/translate.ts'
import { compileOffline } from '../validate-file.ts'

export type CheckOptions = { folder: string; output: 'text' | 'json'; env: Environment }

/**
 * Translates the manifests of a folder, and compiles the configuration of each Gateway, without opening ports
 * and connections. Returns the report. Throws the error of an unreadable folder.
 */
export async function checkManifests({
  folder,
  output,
  env,
}: CheckOptions): Promise<{ text: string; isAccepted: boolean }> {
  const report = await checkFolder(folder, env)
  const text = output === 'json' ? reportJson(report) : reportText(report)
  return { text, isAccepted: isAccepted(report) }
}

async function checkFolder(folder: string, env: Environment): Promise<CheckReport> {
  const { files } = await readManifestFolder(folder)
  const read = createManifestReader({ parse: parseManifest, yieldPoint: () => undefined })
  const manifests = await read(files)
  const translation = createTranslator()(createServiceNames()(manifests.objects))
  const errors: ManifestProblem[] = [...manifests.errors]
  for (const [key, { config }] of translation.gateways) {
    const place = manifests.places.get(`Gateway/${key}`) ?? { file: folder, line: 1 }
    const issues = validateConfig(config)
    const found = issues.length > 0 ? issues : await compileIssues(config, env)
    errors.push(...found.map((message) => ({ ...place, message: `Gateway ${key}: ${message}` })))
  }
  return { errors, warnings: manifests.warnings, objects: checkObjects(manifests, translation) }
}

async function compileIssues(
  config: Parameters<typeof compileOffline>[0],
  env: Environment,
): Promise<readonly string[]> {
  try {
    await compileOffline(config, env, () => {})
    return []
  } catch (error) {
    return reasonsOf(error)
  }
}
