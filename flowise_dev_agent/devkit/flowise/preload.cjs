// Loaded into Flowise before anything else (node --require).
//
// 1. LangChain counts tokens of streamed answers with tables that it fetches from the internet; offline every answer
//    waits minutes for that. The same tables are installed as js-tiktoken/ranks, so they are answered from there.
// 2. When the process that started Flowise is gone without having stopped it (kill -9), Flowise ends too.
'use strict'

const path = require('node:path')
const { createRequire } = require('node:module')
const requireInstalled = createRequire(path.join(process.cwd(), 'package.json'))

const TIKTOKEN = /^https:\/\/tiktoken\.pages\.dev\/js\/([a-z0-9_]+)\.json$/
const originalFetch = globalThis.fetch

globalThis.fetch = async function (input, init) {
    const match = TIKTOKEN.exec(typeof input === 'string' ? input : (input?.url ?? String(input)))
    if (!match) return originalFetch(input, init)
    const ranks = requireInstalled(`js-tiktoken/ranks/${match[1]}`)
    return Response.json(ranks.default ?? ranks)
}

const parent = process.ppid
setInterval(() => {
    if (process.ppid !== parent) process.exit(0)
}, 1000).unref()
