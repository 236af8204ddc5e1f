import type { CompileContext } from '../../../pipeline/compile-context.ts'

type Profiles = ReadonlyMap<string, ReadonlyMap<string, string>>

/** A profile of AWS's shared files. */
export type Profile = {
  readonly name: string
  readonly settings: ReadonlyMap<string, string>
  readonly profiles: Profiles
}

/**
 * Reads the profiles of `~/.aws/config` and `~/.aws/credentials`, whose settings take precedence:
 * https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html. Absent files have no profiles. Sections of
 * sessions are stored as `sso-session NAME`.
 */
export function readProfiles({ environment, readFileNow }: CompileContext): Profiles {
  const folder = homeFolder(environment)
  const profiles = new Map<string, Map<string, string>>()
  const files = [
    { path: environment['AWS_CONFIG_FILE'] || (folder && `${folder}/config`), prefix: /^profile\s+/ },
    {
      path: environment['AWS_SHARED_CREDENTIALS_FILE'] || (folder && `${folder}/credentials`),
      prefix: undefined,
    },
  ]
  for (const { path, prefix } of files) {
    const text = path === undefined ? undefined : textOf(() => readFileNow(path))
    if (text !== undefined) addProfiles(text, prefix, profiles)
  }
  return profiles
}

/** The profile of a name. Throws if there is none. */
export function profileIn(profiles: Profiles, name: string): Profile {
  const settings = profiles.get(name)
  if (settings !== undefined) return { name, settings, profiles }
  throw new Error(`aws: profile "${name}" is in neither ~/.aws/config nor ~/.aws/credentials`)
}

/** The section of a session of IAM Identity Center. Throws if there is none. */
export function ssoSessionIn({ name, profiles }: Profile, session: string): ReadonlyMap<string, string> {
  const settings = profiles.get(`${sessionPrefix}${session}`)
  if (settings !== undefined) return settings
  throw new Error(`aws: profile "${name}": [sso-session ${session}] is not in ~/.aws/config`)
}

const sessionPrefix = 'sso-session '

/** The folder `~/.aws`. */
export function homeFolder(environment: CompileContext['environment']): string | undefined {
  const home = environment['HOME'] || environment['USERPROFILE']
  return home === undefined ? undefined : `${home}/.aws`
}

/** Most machines have no such file. */
function textOf(read: () => string): string | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

function addProfiles(
  text: string,
  prefix: RegExp | undefined,
  profiles: Map<string, Map<string, string>>,
): void {
  let current: Map<string, string> | undefined
  for (const line of text.split(/\r?\n/)) {
    const header = /^\[\s*([^\]]+?)\s*\]/.exec(line)?.[1]
    if (header !== undefined) {
      const name = sectionName(header, prefix)
      current = name === undefined ? undefined : (profiles.get(name) ?? new Map())
      if (name !== undefined && current !== undefined) profiles.set(name, current)
      continue
    }
    // Lines that start with a space are settings of services below a setting.
    const [, key = '', value = ''] = /^([^\s=#;][^\s=]*)\s*=\s*(.*?)\s*(?:\s[#;].*)?$/.exec(line) ?? []
    if (key !== '' && value !== '') current?.set(key.toLowerCase(), value)
  }
}

/** In the configuration file, profiles but the default have a prefix; most other sections are no profiles. */
function sectionName(header: string, prefix: RegExp | undefined): string | undefined {
  if (prefix === undefined || header === 'default') return header
  if (/^sso-session\s/.test(header)) return header.replace(/\s+/, ' ')
  return prefix.test(header) ? header.replace(prefix, '') : undefined
}
