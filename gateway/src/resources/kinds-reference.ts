import { putCreates } from './change/change.ts'
import { isKeyPolicy, type Kind, kinds, policyFields, singletonName } from './kinds.ts'

/**
 * The kinds of config resources in Markdown: a row and a section for each, all from their rows in `kinds`. `configReference` is
 * the reference of the configuration file, for links to where it describes the fields.
 */
export function renderKindsReference(configReference: string): string {
  const headings = new Set([...configReference.matchAll(/^## `(.+)`$/gm)].map(([, path = '']) => path))
  return `${[
    '# Kinds of config resources',
    '<!-- Generated from the kinds by `npm run docs`. -->',
    'What `/api/config/resources/{kind}` knows; how to use it is in [The config API](../config-api.md), and every field in ' +
      '[openapi.json](openapi.json).',
    ['| Kind | Place in the file | Name |', '| --- | --- | --- |', ...kinds.map(renderRow)].join('\n'),
    ...kinds.map((kind) => renderSection(kind, headings)),
  ].join('\n\n')}\n`
}

function renderRow(kind: Kind): string {
  return `| [\`${kind.name}\`](#${slug(kind.name)}) | \`${placeOf(kind)}\` | ${nameWords(kind)} |`
}

function renderSection(kind: Kind, headings: ReadonlySet<string>): string {
  const lines = [`- Id: ${idWords(kind)}`, `- Fields: ${fieldWords(kind, headings)}`, ...rulesOf(kind)]
  return [`## \`${kind.name}\``, kind.doc, lines.join('\n')].join('\n\n')
}

/** The path of one record. */
function placeOf({ placement }: Kind): string {
  const path = placement.path.join('.')
  switch (placement.kind) {
    case 'list':
    case 'keys':
      return `${path}[]`
    case 'map':
      return `${path}.<name>`
    case 'policies':
      return `${path}.<policy>`
    case 'settings':
      return path
    case 'catalog':
      return `${path}[]`
  }
}

function nameWords({ placement }: Kind): string {
  switch (placement.kind) {
    case 'list':
      return placement.identity.map((member) => `\`${member}\``).join(', else ')
    case 'map':
      return '`name`'
    case 'policies':
      return 'the policy'
    case 'keys':
      return 'none'
    case 'settings':
    case 'catalog':
      return `\`${singletonName}\``
  }
}

function idWords(kind: Kind): string {
  if (kind.placement.kind === 'keys') return 'a random UUID, given by the gateway when the record is created.'
  return 'a UUID that follows from kind and name; addresses take the name as well.'
}

function fieldWords({ placement }: Kind, headings: ReadonlySet<string>): string {
  const list = (fields: readonly string[]) => fields.map((field) => `\`${field}\``).join(', ')
  switch (placement.kind) {
    case 'list':
    case 'keys':
      return `as in ${linkTo([...placement.path.slice(0, -1), `${placement.path.at(-1)}[]`], headings)}.`
    case 'map':
      return `\`name\`, and as in ${linkTo([...placement.path, '<name>'], headings)}.`
    case 'policies':
      return `those of the policy, as in ${linkTo(placement.path, headings)}.`
    case 'settings':
      return `${list(placement.fields)} of ${linkTo(placement.path, headings)}.`
    case 'catalog':
      return `${list(placement.fields)}, each as in ${linkTo([...placement.path.slice(0, -1), `${placement.path.at(-1)}[]`, 'inline'], headings)}.`
  }
}

function rulesOf(kind: Kind): string[] {
  const { placement } = kind
  const address = `/api/config/resources/${kind.name}`
  switch (placement.kind) {
    case 'list':
    case 'map':
      return [
        `- \`PUT ${address}\` creates a record, or replaces the one of the same name.`,
        `- \`PUT ${address}/{id}\` replaces a record that is there; with another name in it, it is renamed and keeps its id.`,
      ]
    case 'keys':
      return [
        `- \`PUT ${address}\` always creates records; a key that exists already, in the file or in the database, is 409.`,
        `- \`PUT ${address}/{id}\` replaces a record that is there, its \`key\` included.`,
        `- \`metadata.id\` is the id, and must not be sent.`,
        `- Needs the policy \`${placement.path.slice(0, -1).join('.')}\`, in the file or as a record: 409 without it.`,
      ]
    case 'policies': {
      const fields = policyFields(kind)
      const keys = fields.filter((field) => isKeyPolicy(kind, field))
      return [
        `- Policies: ${fields.map((field) => `\`${field}\``).join(', ')}.`,
        ...(putCreates(kind) ? [`- \`PUT ${address}/{policy}\` creates the record or replaces it.`] : []),
        `- In \`PUT ${address}\`, each value has the policy's name in \`name\`, beside its fields.`,
        ...keys.map((field) => `- \`${field}\` is sent without \`keys\`: those are records of their own.`),
        ...(placement.orphan === undefined
          ? []
          : [`- The file must have the section \`${placement.path[0]}\`: 409 without it.`]),
      ]
    }
    case 'settings':
      return [
        `- \`PUT ${address}\` sets them as a whole: fields that are not sent are not set.`,
        '- In hybrid mode, a field that the file sets is 409.',
      ]
    case 'catalog':
      return [`- \`PUT ${address}\` sets them as a whole.`]
  }
}

/** To the section of the configuration reference that describes a place: its own, or the nearest around it. */
function linkTo(path: readonly string[], headings: ReadonlySet<string>): string {
  const place = path.join('.')
  const lengths = [...path.keys()].map((index) => path.length - index)
  const described = lengths
    .map((length) => path.slice(0, length).join('.'))
    .find((candidate) => headings.has(candidate))
  return described === undefined ? `\`${place}\`` : `[\`${place}\`](config.md#${slug(described)})`
}

/** How Markdown pages name the place of a heading. */
function slug(heading: string): string {
  return heading.toLowerCase().replace(/[^\w-]/g, '')
}
