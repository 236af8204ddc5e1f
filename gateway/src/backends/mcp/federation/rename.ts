import { memberText } from '../../../lib/json/edit.ts'
import { editJson, editString, type JsonEdit, readTargetObject } from '../message/json-edit.ts'
import type { Message } from '../message/message.ts'
import { taskMethod } from '../message/subscriptions.ts'
import { type NameMapping, wrapId } from './names.ts'

/** Path of the task id in a message or result (revision 2025-11-25, "Tasks"). */
const relatedTask = ['_meta', 'io.modelcontextprotocol/related-task', 'taskId'] as const

/**
 * Renames a target's message for the client: resources, tasks, and ids and progress tokens of server requests
 * receive the target, so that responses can be routed. Other content is unchanged.
 */
export function renameFromTarget(message: Message, index: number, names: NameMapping): Message {
  const { method } = message.value
  const text =
    typeof method !== 'string'
      ? renameResult(message.text, index, names)
      : renameServerMessage(message, method, index, names)
  return withText(message, text)
}

/** The message with another text, parsed strictly because rules may depend on it. */
export function withText(message: Message, text: string): Message {
  if (text === message.text) return message
  return readTargetObject(text)
}

/** A list item with its client-visible name. */
export function renameItem(item: string, member: string, index: number, names: NameMapping): string {
  switch (member) {
    case 'tools': {
      const named = editJson(item, ['name'], name(index, names))
      if (!item.includes('esourceUri"')) return named
      const nested = editJson(named, ['_meta', 'ui', 'resourceUri'], uri(index, names))
      return editJson(nested, ['_meta', 'ui/resourceUri'], uri(index, names))
    }
    case 'prompts':
      return editJson(item, ['name'], name(index, names))
    case 'resources':
      return editJson(item, ['uri'], uri(index, names))
    case 'resourceTemplates':
      return editJson(item, ['uriTemplate'], uri(index, names))
    case 'tasks':
      return editJson(item, ['taskId'], task(index, names))
    default:
      return item
  }
}

const name = (index: number, names: NameMapping) => editString((text) => names.nameOf(index, text))
const uri = (index: number, names: NameMapping) => editString((text) => names.uriOf(index, text))
const task = (index: number, names: NameMapping) => editString((text) => names.taskOf(index, text))

/** Renames a server's request or notification. */
function renameServerMessage(
  { text, value }: Message,
  method: string,
  index: number,
  names: NameMapping,
): string {
  let renamed = text
  if ('id' in value) {
    renamed = editJson(renamed, ['id'], (id) => wrapId(index, id))
    renamed = editJson(renamed, ['params', '_meta', 'progressToken'], (token) => wrapId(index, token))
  } else if (method === 'notifications/cancelled') {
    renamed = editJson(renamed, ['params', 'requestId'], (id) => wrapId(index, id))
  } else if (method === 'notifications/resources/updated') {
    renamed = editJson(renamed, ['params', 'uri'], uri(index, names))
  } else if (method === 'notifications/tasks/status' || method === taskMethod) {
    renamed = editJson(renamed, ['params', 'taskId'], task(index, names))
  }
  return text.includes('related-task')
    ? editJson(renamed, ['params', ...relatedTask], task(index, names))
    : renamed
}

/** Renames a server's response. Most responses contain no names, so a text search precedes parsing. */
function renameResult(text: string, index: number, names: NameMapping): string {
  let renamed = text
  if (text.includes('"uri"')) {
    const rename = uri(index, names)
    const content = renameContent(rename)
    renamed = editJson(renamed, ['result', 'content', '*'], content)
    renamed = editJson(renamed, ['result', 'messages', '*', 'content'], content)
    renamed = editJson(renamed, ['result', 'contents', '*', 'uri'], rename)
  }
  if (text.includes('"taskId"')) {
    const rename = task(index, names)
    renamed = editJson(renamed, ['result', 'task', 'taskId'], rename)
    renamed = editJson(renamed, ['result', 'taskId'], rename)
    renamed = editJson(renamed, ['result', ...relatedTask], rename)
  }
  return renamed
}

function renameContent(rename: JsonEdit): JsonEdit {
  return (text) => {
    if (!text.startsWith('{')) return text
    const json = readTargetObject(text)
    if (json.value['type'] === 'resource_link') return editJson(text, ['uri'], rename)
    if (json.value['type'] === 'resource' && memberText(json, 'resource') !== undefined) {
      return editJson(text, ['resource', 'uri'], rename)
    }
    return text
  }
}
