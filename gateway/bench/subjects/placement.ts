const roles = ['load', 'upstream', 'gateway'] as const

export type Role = (typeof roles)[number]

/** CPU lists in the form of `taskset -c`, by role. A role without a list runs on any CPU. */
export type Placement = Partial<Record<Role, string>>

const example = 'load=0,upstream=0,gateway=1,2'

/** Parses `load=0,gateway=1,2-3`: an item without `=` extends the list of the role before it. */
export function parsePlacement(text: string): Placement {
  const placement: Placement = {}
  let role: Role | undefined
  for (const item of text.split(',')) {
    const [left, right] = item.includes('=') ? split(item) : [undefined, item]
    if (left !== undefined) role = roleNamed(left, text)
    if (role === undefined || !/^\d+(-\d+)?$/.test(right)) throw invalid(text)
    placement[role] = left === undefined ? `${placement[role]},${right}` : right
  }
  return placement
}

/** A command on the CPUs of a list. `taskset` replaces itself: the process id is that of the program. */
export function onCpus(cpus: string | undefined, command: readonly string[]): string[] {
  return cpus === undefined ? [...command] : ['taskset', '-c', cpus, ...command]
}

/** `load 0, gateway 1-3`, or nothing. */
export function describePlacement(placement: Placement): string {
  return roles
    .flatMap((role) => (placement[role] === undefined ? [] : `${role} ${placement[role]}`))
    .join(', ')
}

function split(item: string): [string, string] {
  const at = item.indexOf('=')
  return [item.slice(0, at), item.slice(at + 1)]
}

function roleNamed(name: string, text: string): Role {
  const role = roles.find((each) => each === name)
  if (role === undefined) throw invalid(text)
  return role
}

function invalid(text: string): Error {
  return new Error(
    `--pin must assign CPU lists to ${roles.join(', ')}, for example "${example}", got "${text}"`,
  )
}
